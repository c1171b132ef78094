package pull

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func recordOf(folder, commit string, zipped, packed byte) *sourceRecord {
	s := upstream.ModuleSource{Git: commit != "", URL: &url.URL{Scheme: "https", Host: "git.example.com", Path: "/acme/vpc", RawQuery: "token=secret"}, Folder: folder}
	c := upstream.ModuleContent{Commit: commit}
	if zipped != 0 {
		c.SHA256 = wire.SHA256{zipped}
	}
	return newSourceRecord(s, c, wire.SHA256{packed})
}

const archiveURL = "https://example.com/vpc.tar.gz"

func fromElsewhere(r *sourceRecord, source string) *sourceRecord {
	r.Source = source
	return r
}

func TestSourceRecords(t *testing.T) {
	r := recordOf("modules/a", "", 1, 2)
	if strings.Contains(string(r.encode()), "secret") {
		t.Errorf("it has a secret: %s", r.encode())
	}
	if again := decodeSourceRecord(r.encode()); !reflect.DeepEqual(again, r) {
		t.Errorf("it was %+v, and is %+v", r, again)
	}
	for _, damaged := range []string{"", "x", "{}", strings.Replace(string(r.encode()), `"format": 1`, `"format": 2`, 1), strings.Replace(string(r.encode()), `"package_sha256"`, `"other"`, 1)} {
		if got := decodeSourceRecord([]byte(damaged)); got != nil {
			t.Errorf("%q is read as %+v", damaged, got)
		}
	}
}

// Whether a module is the same as at the earlier fetch.
func TestSourceRecordsAgree(t *testing.T) {
	for _, test := range []struct {
		rule        string
		before, now *sourceRecord
		agree       bool
		says        string // of a conflict
	}{
		{"the same commit", recordOf("", "aa", 0, 1), recordOf("", "aa", 0, 1), true, ""},
		{"the same commit, packed otherwise by its code host", recordOf("", "aa", 1, 1), recordOf("", "aa", 2, 2), true, ""},
		{"the same commit of two repositories, as after a move", recordOf("", "aa", 0, 1), fromElsewhere(recordOf("", "aa", 0, 2), "git::https://other.example.com/vpc"), true, ""},
		{"an archive that says it is of the same commit", fromElsewhere(recordOf("", "aa", 1, 1), archiveURL), fromElsewhere(recordOf("", "aa", 2, 2), archiveURL), false, "was an archive of commit aa with the sha256 01"},
		{"an archive of the same commit, packed otherwise", fromElsewhere(recordOf("", "aa", 1, 1), archiveURL), fromElsewhere(recordOf("", "aa", 2, 1), archiveURL), true, ""},
		{"the same commit by git, after an archive of it", recordOf("", "aa", 1, 1), recordOf("", "aa", 0, 2), true, ""},
		{"another commit of the same files", recordOf("", "aa", 0, 1), recordOf("", "bb", 0, 1), false, "was commit aa when it was fetched on "},
		{"the same archive", recordOf("", "", 1, 1), recordOf("", "", 1, 2), true, ""},
		{"an archive with the same files, by a registry that packs on request", recordOf("", "", 1, 1), recordOf("", "", 2, 1), true, ""},
		{"another archive", recordOf("", "", 1, 1), recordOf("", "", 2, 2), false, "is now an archive with the sha256 02"},
		{"a repository after an archive", recordOf("", "", 1, 1), recordOf("", "aa", 0, 2), false, "is now commit aa"},
		{"another folder of the same commit", recordOf("a", "aa", 0, 1), recordOf("b", "aa", 0, 1), false, "commit aa in b"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := test.now.agrees(test.before); got != test.agree || got != test.before.agrees(test.now) {
				t.Errorf("that they agree is %v", got)
			}
			if err := test.now.conflict(test.before); !test.agree && (!errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func FuzzDecodeSourceRecord(f *testing.F) {
	f.Add(recordOf("a", "aa", 1, 2).encode())
	f.Fuzz(func(t *testing.T, content []byte) {
		if r := decodeSourceRecord(content); r != nil && decodeSourceRecord(r.encode()) == nil {
			t.Errorf("%q is not read again", r.encode())
		}
	})
}
