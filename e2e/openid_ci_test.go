package e2e_test

import (
	"net/http"
	"slices"
	"testing"
)

// A CI job uses the token that its CI service issues to it. No secret has to be stored.
func TestCITokens(t *testing.T) {
	t.Parallel()
	openid, another := startOpenID(t), startOpenID(t)
	tokens := newTokens(t)
	fromFile := tokens.New("ci")
	rules := []string{"access {", "allow anonymous read open", "allow ci read acme other.example.com", "}"}
	registry := startRegistry(t,
		site("registry.example.com", privateTree(t), slices.Concat(
			[]string{"auth terraform_tokens " + tokens.File}, openid.Authenticates("require client_id ci ci-*"), rules)...),
		site("strict.example.com", newTree(t).Provider("acme/demo", "1.0.0"), slices.Concat(
			openid.Authenticates("require client_id release-*"), rules)...))

	eachClient(t, func(t *testing.T, c Client) {
		for _, good := range []struct{ rule, token string }{
			{"a job's token", openid.CIToken(t, "ci", openIDAudience)},
			{"the token of another job", openid.CIToken(t, "ci", openIDAudience)},
			{"a token of a tokens file, which is accepted as well", fromFile},
		} {
			t.Run(good.rule, func(t *testing.T) {
				ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
				ws.Write(t, "module.tf", everyPrivateThing)
				ws.Setenv("TF_TOKEN_registry_example_com", good.token)
				c.Run(t, ws, "init")
				expect(t, c.Run(t, ws, "apply", "-auto-approve"),
					`text = "hello world from 1.0.0"`, `vpc = "acme/vpc/aws 1.0.0 and subnet of acme/vpc/aws 1.1.0"`)
			})
		}
		t.Run("a public provider, with an expired token", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting("registry.example.com/open/demo", "1.0.0"))
			ws.Setenv("TF_TOKEN_registry_example_com", openid.CIToken(t, "ci-of-yesterday", openIDAudience))
			c.Run(t, ws, "init")
		})

		for _, refused := range []struct{ rule, host, token string }{
			{"for another service", "registry.example.com", openid.CIToken(t, "ci", openIDElsewhere)},
			{"expired", "registry.example.com", openid.CIToken(t, "ci-of-yesterday", openIDAudience)},
			{"of another issuer", "registry.example.com", another.CIToken(t, "ci", openIDAudience)},
			{"without the required claim", "strict.example.com", openid.CIToken(t, "ci", openIDAudience)},
		} {
			t.Run(refused.rule, func(t *testing.T) {
				ws := newWorkspace(t, registry, greeting(refused.host+"/acme/demo", "1.0.0"))
				ws.Setenv("TF_TOKEN_registry_example_com", refused.token)
				ws.Setenv("TF_TOKEN_strict_example_com", refused.token)
				expect(t, c.Refused(t, ws, "init"), "host "+refused.host+" rejected the given authentication credentials")

				ws.Write(t, "main.tf", calling(refused.host+"/acme/vpc/aws", "1.0.0"))
				expect(t, c.Refused(t, ws, "init"), "error looking up module versions: 401 Unauthorized")
			})
		}
	})
}

// requester returns a function that requests a URL with a given token and
// returns the status. It reuses one connection.
func (r *Registry) requester(t *testing.T, url string) func(token string) int {
	t.Helper()
	client, err := r.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return func(token string) int {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close() // the body is short and has been read
		return answer.StatusCode
	}
}
