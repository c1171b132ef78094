package e2e_test

import (
	"net/http"
	"testing"
)

// A client that downloads with an expired link reports that it was refused, but
// does not show the registry's message.
func TestExpiredLink(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t)
	ci := tokens.New("ci")
	const host = "registry.example.com"
	private := site(host, privateTree(t), append(privately(tokens), "links 1s")...)
	late := Site{Address: "late.example.com"}
	registry := startRegistry(t, private, late)
	packed := registry.Download(t, host, ci).Package
	location := registry.GetAs(t, ci, "https://"+host+"/v1/modules/acme/vpc/aws/1.0.0/download").Header.Get("X-Terraform-Get")
	for _, link := range []string{packed, location} {
		eventually(t, "the link has expired", func() bool { return registry.Get(t, link).Status == http.StatusForbidden })
	}

	// A client that has waited too long has documents with these links.
	late.Directives = []string{
		"header Content-Type application/json",
		"respond /" + host + "/acme/demo/index.json `" + `{"versions":{"1.0.0":{}}}` + "`",
		"respond /" + host + "/acme/demo/1.0.0.json `" + `{"archives":{"` + thisPlatform + `":{"url":"` + packed + `"}}}` + "`",
		"respond /.well-known/terraform.json `" + `{"modules.v1":"/"}` + "`",
		"respond /acme/vpc/aws/versions `" + `{"modules":[{"versions":[{"version":"1.0.0"}]}]}` + "`",
		"header /acme/vpc/aws/1.0.0/download X-Terraform-Get " + location,
		"respond /acme/vpc/aws/1.0.0/download 204",
	}
	registry.Reload(t, private, late)

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.0.0"))
		ws.CLIConfig(t, `
provider_installation {
  network_mirror {
    url = "https://late.example.com/"
  }
}
`)
		// Some "bad response code: 403", others "unsuccessful request to …: 403 Forbidden".
		expect(t, c.Refused(t, ws, "init"), "Error while installing "+host+"/acme/demo", "403")

		ws = newWorkspace(t, registry, calling("late.example.com/acme/vpc/aws", "1.0.0"))
		expect(t, c.Refused(t, ws, "init"), "bad response code: 403")
	})
}
