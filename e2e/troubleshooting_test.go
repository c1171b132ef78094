package e2e_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The messages of clients in docs/troubleshooting.md are in the source of OpenTofu, of
// the libraries that it shares with Terraform, or of Go.
func TestTroubleshootingClientMessages(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(repository(), "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(content), "\n## The ten most frequent problems\n")
	chapter, _, found := strings.Cut(chapter, "\n### Other tools\n")
	if !found {
		t.Fatal("docs/troubleshooting.md has no such chapter")
	}
	literals := clientLiterals(t)
	filled := regexp.MustCompile(`…|\bH\b|[0-9]+`) // where clients fill something in
	messages := 0
	for line := range strings.Lines(chapter) {
		said, isQuote := strings.CutPrefix(line, "> ")
		if cells := strings.Split(line, "|"); len(cells) >= 3 {
			said = cells[1]
		} else if !isQuote {
			continue
		}
		for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(said, -1) {
			messages++
			for _, part := range filled.Split(span[1], -1) {
				if part = strings.Trim(part, " :"); !strings.Contains(literals, part) {
					t.Errorf("%q of %q is in no client", part, span[1])
				}
			}
		}
	}
	if messages < 50 {
		t.Errorf("there are %d messages", messages)
	}
}

// clientLiterals returns the string literals in the source of OpenTofu and its
// libraries. It joins literals that are added up.
func clientLiterals(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(beforeDeadline(t), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/opentofu/opentofu", "github.com/opentofu/svchost", "github.com/hashicorp/go-getter", "github.com/ProtonMail/go-crypto")
	list.Dir = "tofu"
	dirs, err := list.Output()
	require(t, err)
	folders := strings.Fields(string(dirs))
	for _, name := range []string{"crypto", "net", "os", "syscall"} {
		folders = append(folders, filepath.Join(goEnv(t, "GOROOT"), "src", name))
	}
	literal := regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\"|`[^`]*`")
	added := regexp.MustCompile(`"\s*\+\s*"`)
	var all strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, quoted := range literal.FindAll(added.ReplaceAll(source, nil), -1) {
				if text, err := strconv.Unquote(string(quoted)); err == nil {
					all.WriteString(text + "\n")
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
