package remote

import "testing"

// Variables stand for hostnames as the clients read them.
func TestEnvironmentTokens(t *testing.T) {
	got := EnvironmentTokens([]string{"TF_TOKEN_registry_example_com=secret", "TF_TOKEN_my__registry_example_com=dash", "TF_TOKEN_a-b_example_com=as it is", "TF_TOKEN_xn--r8j_example_com=punycode", "TF_TOKEN_=", "TF_TOKEN_empty_com=", "HOME=/root"})
	for host, token := range map[string]string{"registry.example.com": "secret", "my-registry.example.com": "dash", "a-b.example.com": "as it is", "xn--r8j.example.com": "punycode"} {
		found := false
		for hostname, have := range got {
			found = found || string(hostname) == host && have == token
		}
		if !found {
			t.Errorf("there is no token of %s in %v", host, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("got %v", got)
	}
}
