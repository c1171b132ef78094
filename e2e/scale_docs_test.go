package e2e_test

import "testing"

const scaleDocs = "docs/scale.md"

// The Caddyfiles of docs/scale.md are valid.
func TestScaleDocsCaddyfiles(t *testing.T) {
	t.Parallel()
	files, storage := t.TempDir(), t.TempDir()
	validateCaddyfile(t, substitute(t, documented(t, scaleDocs, "caddyfile", "storage file_system"),
		"/mnt/terraform", files, "/mnt/caddy", storage))
	validateCaddyfile(t, documented(t, scaleDocs, "caddyfile", "reverse_proxy"))
	binary, err := blobBinary()
	if err != nil {
		t.Fatal(err)
	}
	validateCaddyfileWith(t, binary, documented(t, scaleDocs, "caddyfile", "filesystem bucket blob"))
}
