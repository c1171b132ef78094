package server

import (
	"encoding/json"
	"testing"
)

func TestMirror(t *testing.T) {
	plain := Registry("/srv", "/etc/key.asc", "")
	got, err := json.Marshal(Mirror(plain, "registry.terraform.io", "https://127.0.0.1:8443"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"handler":"terraform_registry","root":"/srv","signing_key":{"file":"/etc/key.asc"},` +
		`"upstream":[{"hostnames":["registry.terraform.io"],"url":"https://127.0.0.1:8443"}]}`
	if string(got) != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	if len(plain) != 3 {
		t.Errorf("the plain registry has become %v", plain)
	}
}
