package e2e_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make the screenshots in docs/images again")

// maxScreenshot is the maximum size of a picture in the documentation.
const maxScreenshot = 120 << 10

// screenshots are the pictures in docs/images. Each of these pages has one in both
// colour schemes, NAME-light.webp and NAME-dark.webp, and some have one of a phone.
var screenshots = []struct {
	name, path string
	phone      bool
	operator   bool
}{
	{name: "home", path: "/", phone: true},
	{name: "browse", path: "/browse/modules"},
	{name: "search", path: "/search?q=tags"},
	{name: "module", path: "/modules/acme/vpc/aws/1.4.0", phone: true},
	{name: "inputs", path: "/modules/acme/vpc/aws/1.4.0?tab=inputs"},
	{name: "changes", path: "/modules/acme/vpc/aws/1.4.0?tab=changes&from=1.3.2"},
	{name: "code", path: "/modules/acme/vpc/aws/1.4.0/code/main.tf?from=1.3.2"},
	{name: "versions", path: "/modules/acme/vpc/aws/1.2.0?tab=versions"},
	{name: "provider", path: "/providers/acme/demo/1.0.0"},
	{name: "packages", path: "/providers/acme/demo/1.0.0?tab=packages"},
	{name: "docs", path: "/providers/acme/demo/1.0.0/docs/resources/greeting", phone: true},
	{name: "report", path: "/_registry/report", operator: true},
}

// TestScreenshots checks that the pictures are there, and not too large for a
// repository. To make them again from the sample tree:
//
//	go test ./e2e -run TestScreenshots -update
func TestScreenshots(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(repository(), "docs", "images")
	if *update {
		makeScreenshots(t, dir)
	}
	var want []string
	for _, s := range screenshots {
		want = append(want, s.name+"-dark.webp", s.name+"-light.webp")
		if s.phone {
			want = append(want, s.name+"-phone.webp")
		}
	}
	slices.Sort(want)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > maxScreenshot {
			t.Errorf("%s has %d bytes, more than %d", f.Name(), info.Size(), maxScreenshot)
		}
		if strings.HasSuffix(f.Name(), ".webp") {
			got = append(got, f.Name())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/images has\n%q, want\n%q: make them with -update", got, want)
	}
}

func makeScreenshots(t *testing.T, dir string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(dir, "*.webp"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	tokens := newTokens(t)
	operator := tokens.New("operator")
	files := sampleTree(t)
	// Something for the report.
	writeFile(t, files.Path("modules/acme/queue/aws/0.9.0.tar.gz"), "cut off")
	writeFile(t, files.Path("modules/acme/terraform-aws-bucket.zip"), "misplaced")
	registry := startPages(t, files, sampleOffers, "auth terraform_tokens "+tokens.File,
		"access {", "allow anonymous read *", "allow operator manage *", "}")
	anyone, known := openTab(t, registry), openTab(t, registry)
	known.Authorize(operator)
	for _, s := range screenshots {
		tab := anyone
		if s.operator {
			tab = known
		}
		tab.Resize(desktopWidth, desktopHeight)
		for _, scheme := range []string{"light", "dark"} {
			tab.Prefer(scheme)
			tab.Open(pagesSite + s.path)
			tab.Screenshot(filepath.Join(dir, s.name+"-"+scheme+".webp"))
		}
		if s.phone {
			tab.Prefer("light")
			tab.Resize(phoneWidth, phoneHeight)
			tab.Open(pagesSite + s.path)
			tab.Screenshot(filepath.Join(dir, s.name+"-phone.webp"))
		}
	}
}
