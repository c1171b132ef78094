package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// tarOf packs entries as given; regular files are filled with zeros.
func tarOf(headers ...tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeXGlobalHeader {
			h.Name = ""
		}
		if err := w.WriteHeader(&h); err != nil {
			panic(err)
		}
		io.CopyN(w, zeroReader{}, h.Size)
	}
	w.Close()
	return b.Bytes()
}

// tarHeader returns an entry's header alone.
func tarHeader(h tar.Header) []byte {
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// sparseEntry returns an entry as `tar -S` packs a file of zeros with some bytes at its end.
func sparseEntry(name string, size int64, end string) []byte {
	h := tarHeader(tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(end)), Mode: 0o644, Format: tar.FormatGNU})
	h[156] = tar.TypeGNUSparse
	copy(h[386:], fmt.Sprintf("%011o\x00%011o\x00", size-int64(len(end)), len(end)))
	copy(h[483:], fmt.Sprintf("%011o\x00", size))
	copy(h[148:], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00", sum))
	return append(append(h, end...), make([]byte, -len(end)&(tarBlock-1))...)
}

// withSparse packs a module with a sparse file.
func withSparse(name string, size int64, end string) []byte {
	return gzipOf(append(sparseEntry(name, size, end), tarOfFiles("main.tf", "")...))
}

func gzipOf(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	z.Write(content)
	z.Close()
	return b.Bytes()
}

// zerosOf packs whole mebibytes of zeros: one mebibyte is compressed, and repeated.
func zerosOf(size int) []byte {
	return bytes.Repeat(gzipOf(make([]byte, 1<<20)), size>>20)
}

func named(names ...string) []tar.Header {
	var headers []tar.Header
	for _, name := range names {
		h := tar.Header{Name: name, Typeflag: tar.TypeReg}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		headers = append(headers, h)
	}
	return headers
}

func moduleFinding(content []byte, format string) *tree.Finding {
	_, f := factsOf(content, format)
	return f
}

func factsOf(content []byte, format string) (moduleFacts, *tree.Finding) {
	d, err := digestModule(context.Background(), fileOf(content), int64(len(content)), format)
	if err != nil {
		return moduleFacts{}, tree.AsFinding(err)
	}
	if d.SHA256 != wire.SHA256Of(content) || d.Size != int64(len(content)) {
		return moduleFacts{}, tree.Findingf(tree.ChecksumMismatch, "the sha256 of %d bytes is %s", d.Size, d.SHA256)
	}
	return decodeFacts(d.Content), nil
}

func TestModuleFinder(t *testing.T) {
	const elsewhere, in = "at the archive's root", "//"
	for _, test := range []struct {
		rule  string
		names []string
		says  string // empty: found at the root; in and a folder: found there
	}{
		{"at the root", []string{"main.tf"}, ""},
		{"at the root, called here", []string{"./", "./main.tf"}, ""},
		{"in JSON", []string{"main.tf.json"}, ""},
		{"for OpenTofu", []string{"main.tofu"}, ""},
		{"for OpenTofu in JSON", []string{"main.tofu.json"}, ""},
		{"whatever lies beside it", []string{"LICENSE", "README.md", "vpc/main.tf", "main.tf"}, ""},
		{"in several folders, used by //folder", []string{"modules/", "modules/a/main.tf", "modules/b/main.tf"}, ""},
		{"deeper, used by //folder/folder", []string{"modules/a/main.tf"}, ""},
		{"in two top folders, used by //folder", []string{"a/main.tf", "b/main.tf"}, ""},
		{"in one top folder beside another", []string{"a/main.tf", "docs/a.md"}, ""},
		{"in one top folder beside a document", []string{"a/main.tf", "README.md"}, ""},
		{"in a folder of the archive, as code hosts make it", []string{"vpc-1.0.0/", "vpc-1.0.0/LICENSE", "vpc-1.0.0/main.tf", "vpc-1.0.0/modules/a/main.tf"}, in + "vpc-1.0.0"},
		{"in a folder that has the modules only", []string{"vpc-1.0.0/", "vpc-1.0.0/README.md", "vpc-1.0.0/modules/a/main.tf", "vpc-1.0.0/examples/b/main.tf"}, in + "vpc-1.0.0"},
		{"in a folder, beside what git archive adds", []string{"pax_global_header", "vpc-0a1b2c/main.tf"}, in + "vpc-0a1b2c"},
		{"in a folder called here", []string{"./", "./vpc/", "./vpc/main.tf"}, in + "vpc"},
		{"in a folder beside nothing but a licence", []string{"LICENSE", "vpc/main.tf"}, in + "vpc"},
		{"in a folder beside what macOS adds", []string{"vpc/main.tf", "__MACOSX/vpc/._main.tf", ".DS_Store", "._vpc"}, in + "vpc"},
		{"in a folder beside an empty one", []string{"vpc/", "vpc/main.tf", "docs/"}, in + "vpc"},
		{"in a folder with every character that is safe", []string{"Vpc_1.0~rc-1+b5/main.tf"}, in + "Vpc_1.0~rc-1+b5"},
		{"in a folder, whatever else has files in it", []string{"vpc/docs/a.md", "vpc/main.tf", "vpc/.git/config"}, in + "vpc"},
		{"in folders of one top folder, used by //folder/folder", []string{"vpc/a/main.tf", "vpc/b/main.tf"}, ""},
		{"not in a folder with a space", []string{"vpc 1.0.0/main.tf"}, elsewhere},
		{"not in a folder with a letter that URLs escape", []string{"übersicht/main.tf"}, elsewhere},
		{"not in a folder whose name is a pattern", []string{"vpc[1]/main.tf"}, elsewhere},
		{"not in a folder whose name ends a URL's path", []string{"vpc?a=b/main.tf"}, elsewhere},
		{"not in a folder whose name ends a URL", []string{"vpc#1/main.tf"}, elsewhere},
		{"not in a folder whose name is escaped", []string{"vpc%201/main.tf"}, elsewhere},
		{"not in a hidden file", []string{".main.tf", "README.md"}, "no .tf file"},
		{"not in what an editor leaves", []string{"main.tf~", "#main.tf#", ".#main.tf"}, "no .tf file"},
		{"not in variables", []string{"terraform.tfvars", "main.tfstate"}, "no .tf file"},
		{"not in a folder called like a file", []string{"main.tf/", "main.tf/README.md"}, "no .tf file"},
		{"not in nothing", nil, "no .tf file"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var inZip []string
			for _, name := range test.names {
				inZip = append(inZip, name, "")
			}
			for format, content := range map[string][]byte{"zip": zipOf(inZip...), "tar.gz": gzipOf(tarOf(named(test.names...)...))} {
				facts, f := factsOf(content, format)
				if folder, ok := strings.CutPrefix(test.says, in); ok || test.says == "" {
					if f != nil || facts.Folder != folder {
						t.Errorf("in a %s it is in %q, and the finding is %+v", format, facts.Folder, f)
					}
				} else if f == nil || f.Reason != tree.NoConfiguration || !strings.Contains(f.Detail, test.says) {
					t.Errorf("in a %s the finding is %+v", format, f)
				}
			}
		})
	}
}

// The registry that has fetched a module says at the beginning of its package in which folder the module is.
// What comes later was packed by others.
func TestTheFolderIsRecordedAtTheBeginning(t *testing.T) {
	says := func(folder string) tar.Header {
		return tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{folderRecord: folder}}
	}
	files := named("a/main.tf", "b/main.tf")
	for _, test := range []struct {
		rule    string
		headers []tar.Header
		want    string
	}{
		{"at the beginning", append([]tar.Header{says("b")}, files...), "b"},
		{"there, and again", append([]tar.Header{says("b"), says("a")}, files...), "b"},
		{"behind a file", []tar.Header{files[0], says("b"), files[1]}, ""},
	} {
		facts, f := factsOf(gzipOf(tarOf(test.headers...)), "tar.gz")
		if f != nil || facts.Folder != test.want {
			t.Errorf("%s: the module is in %q, and the finding is %+v", test.rule, facts.Folder, f)
		}
	}
}

func TestTarsThatAreRefused(t *testing.T) {
	skipInShort(t)
	main := tar.Header{Name: "main.tf", Typeflag: tar.TypeReg, Size: 3000}
	with := func(h ...tar.Header) []byte { return gzipOf(tarOf(append(h, main)...)) }
	good := with()
	header := tarHeader(tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Size: 1 << 40})
	zeros := zerosOf(freeUnpacked + 1<<20)
	for _, test := range []struct {
		rule    string
		content []byte
		reason  tree.Reason // empty: accepted
		says    string
	}{
		{"as it should be", good, "", ""},
		{"with git's global header", with(tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "70e004b"}}), "", ""},
		{"with a long name", with(tar.Header{Name: strings.Repeat("folder/", 60) + "x", Typeflag: tar.TypeReg}), "", ""},
		{"with a symlink inside", with(tar.Header{Name: "modules/a/common.md", Typeflag: tar.TypeSymlink, Linkname: "../../README.md"}), "", ""},
		{"with a hard link inside", with(tar.Header{Name: "a/README.md", Typeflag: tar.TypeLink, Linkname: "main.tf"}), "", ""},
		{"without the tar's end", gzipOf(tarOf(main)[:512*7]), "", ""},
		{"with an entry for its root, as Python's tarfile writes it", with(tar.Header{Name: "/", Typeflag: tar.TypeDir}), "", ""},
		{"with a device", with(tar.Header{Name: "null", Typeflag: tar.TypeChar}), "", ""},
		{"with a file that has holes", withSparse("disk.img", 1<<20, "x"), "", ""},
		{"with a contiguous file", with(tar.Header{Name: "a", Typeflag: tar.TypeCont, Size: 1}), "", ""},
		{"in two parts", append(gzipOf(tarOf(main)[:512]), gzipOf(tarOf(main)[512:])...), "", ""},

		{"with a symlink outside", with(tar.Header{Name: "a/x", Typeflag: tar.TypeSymlink, Linkname: "../../x"}), tree.BadArchive, "leaves its folder"},
		{"with an absolute symlink", with(tar.Header{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), tree.BadArchive, "leaves its folder"},
		{"with a hard link outside", with(tar.Header{Name: "a/x", Typeflag: tar.TypeLink, Linkname: "../x"}), tree.BadArchive, "leaves its folder"},
		{"with an absolute hard link", with(tar.Header{Name: "x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}), tree.BadArchive, "leaves its folder"},
		{"with a parent folder", with(tar.Header{Name: "../x.tf", Typeflag: tar.TypeReg}), tree.BadArchive, "leaves its folder"},
		{"with a way back in, which clients refuse too", with(tar.Header{Name: "a/../x.tf", Typeflag: tar.TypeReg}), tree.BadArchive, "leaves its folder"},
		{"with an absolute name", with(tar.Header{Name: "/x.tf", Typeflag: tar.TypeReg}), tree.BadArchive, "leaves its folder"},
		{"with an entry of a type that clients write as a file", with(tar.Header{Name: "x", Typeflag: 'Z', Size: 1}), tree.BadArchive, "neither a file nor a folder"},
		{"with a folder as Windows writes it", with(tar.Header{Name: `a\x.tf`, Typeflag: tar.TypeReg}), tree.BadArchive, "not every client"},

		{"cut short in gzip's trailer", good[:len(good)-1], tree.BadArchive, "copy it again"},
		{"cut short in the middle", good[:len(good)/2], tree.BadArchive, "copy it again"},
		{"cut short before it was packed", gzipOf(tarOf(main)[:1000]), tree.BadArchive, "copy it again"},
		{"with a wrong checksum", append(bytes.Clone(good[:len(good)-8]), make([]byte, 8)...), tree.BadArchive, "copy it again"},
		{"with something behind it", append(bytes.Clone(good), "junk"...), tree.BadArchive, "copy it again"},
		{"of no tar", gzipOf(bytes.Repeat([]byte("x"), 1000)), tree.BadArchive, "copy it again"},
		{"of no gzip", tarOf(main), tree.BadArchive, "copy it again"},
		{"of nothing", gzipOf(nil), tree.NoConfiguration, "no .tf file"},

		{"that unpacks without end", append(gzipOf(tarHeader(tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Size: freeUnpacked})), zeros...), tree.TooLarge, "unpacks to more than"},
		{"that goes on without end behind its end", append(bytes.Clone(good), zeros...), tree.TooLarge, "unpacks to more than"},
		{"with a file that is nearly all holes", withSparse("disk.img", 8<<30-1, "x"), tree.TooLarge, "unpacks to more than"},
		{"that says it unpacks without end", gzipOf(header), tree.TooLarge, "unpacks to more than"},
		{"with names that take megabytes of memory", gzipOf(bytes.Repeat(tarOf(tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("a", maxDirectory/8)})[:maxDirectory/8+3*512], 9)), tree.TooLarge, "names"},
		{"with more entries than any module has", bytes.Repeat(gzipOf(bytes.Repeat(tarOf(tar.Header{Name: "x"})[:512], 1000)), maxEntries/1000+1), tree.TooLarge, "more than 50000 entries"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if testing.Short() && len(test.content) > 100_000 {
				t.Skip("it takes seconds to unpack")
			}
			f := moduleFinding(test.content, "tar.gz")
			if test.reason == "" && f != nil || test.reason != "" && (f == nil || f.Reason != test.reason || !strings.Contains(f.Detail, test.says)) {
				t.Errorf("the finding is %+v", f)
			}
		})
	}
}

// State, plans and keys in an archive are noted, and credentials apart from them. The
// archive is offered all the same.
func TestSecretsInAnArchive(t *testing.T) {
	key, plan := privateKeys(t)["PKCS#8"], testdata(t, "saved-plan")
	for _, test := range []struct {
		rule  string
		files []string // names and contents
		leaks string
	}{
		{"none", []string{"main.tf", "", ".terraform.lock.hcl", "x", ".env.example", "x", "certs/ca.pem", "x", ".aws/", ""}, ""},
		{"state", []string{"main.tf", "", "terraform.tfstate", "{}"}, "terraform.tfstate (state)"},
		{"state in a folder of workspaces", []string{"main.tf", "", "terraform.tfstate.d/prod/x", "{}"}, "terraform.tfstate.d/prod/x (state)"},
		{"credentials", []string{"main.tf", "", "a/.aws/config", "x", ".env", "x"}, ""},
		{"a plan", []string{"main.tf", "", "release", plan}, "release (a saved plan)"},
		{"a key", []string{"main.tf", "", "certs/server.txt", key}, "certs/server.txt (a private key)"},
		{"in the folder of the module", []string{"vpc/main.tf", "", "vpc/terraform.tfstate", "{}"}, "vpc/terraform.tfstate (state)"},
		{"many", []string{"main.tf", "", "a", key, "b", key, "c", key, "d", key, "e", key}, "a (a private key), b (a private key), c (a private key) and 2 others"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var headers bytes.Buffer
			w := tar.NewWriter(&headers)
			for i := 0; i < len(test.files); i += 2 {
				kind := byte(tar.TypeReg)
				if strings.HasSuffix(test.files[i], "/") {
					kind = tar.TypeDir
				}
				w.WriteHeader(&tar.Header{Name: "./" + test.files[i], Typeflag: kind, Size: int64(len(test.files[i+1])), Mode: 0o644})
				io.WriteString(w, test.files[i+1])
			}
			w.Close()
			for format, content := range map[string][]byte{"zip": zipOf(test.files...), "tar.gz": gzipOf(headers.Bytes())} {
				facts, f := factsOf(content, format)
				if got := (&nameList{facts.Leaks, facts.LeaksTotal}).String(); f != nil || got != test.leaks {
					t.Errorf("in a %s it is %q, %v", format, got, f)
				}
				credentials := map[string]string{"credentials": "a/.aws/config (credentials) and .env (credentials)"}[test.rule]
				if got := (&nameList{facts.Secrets, facts.SecretsTotal}).String(); got != credentials {
					t.Errorf("credentials in a %s are %q", format, got)
				}
			}
		})
	}
}

// A file with holes is like any other: its name and its content count.
func TestSecretsInAFileWithHoles(t *testing.T) {
	for name, content := range map[string][]byte{
		"a.tfstate": withSparse("a.tfstate", 8192, "{}"),
		"server":    withSparse("server", int64(len(privateKeys(t)["PKCS#8"])), privateKeys(t)["PKCS#8"]),
	} {
		if facts, f := factsOf(content, "tar.gz"); f != nil || facts.LeaksTotal != 1 {
			t.Errorf("%s: it has %v, %v", name, facts.Leaks, f)
		}
	}
}

// An archive that clients cannot unpack is doubted. It is offered all the same if it is there already.
func TestModulesThatClientsCannotUnpack(t *testing.T) {
	for _, test := range []struct {
		rule  string
		names []string
		says  string // empty: clients can unpack it
	}{
		{"a file beside a folder", []string{"main.tf", "docs.md", "docs/", "docs/a.md"}, ""},
		{"a file twice", []string{"main.tf", "main.tf"}, ""},
		{"a file that is a folder", []string{"main.tf", "docs", "docs/a.md"}, "docs"},
		{"a folder that is a file, written in another way", []string{"main.tf", "./docs/", "docs"}, "docs"},
		{"a file that is a folder further up", []string{"main.tf", "a/b/c/d.md", "a/b"}, "a/b"},
		{"a long name", []string{"main.tf", strings.Repeat("x", 300), strings.Repeat("x", 300) + "/a"}, strings.Repeat("x", 200) + "…"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var inZip []string
			for _, name := range test.names {
				inZip = append(inZip, name, "")
			}
			var want []string
			if test.says != "" {
				want = []string{fmt.Sprintf("rename %q, which is a file and a folder, so that no client can unpack the package", test.says)}
			}
			for format, content := range map[string][]byte{"zip": zipOf(inZip...), "tar.gz": gzipOf(tarOf(named(test.names...)...))} {
				d, err := digestModule(t.Context(), fileOf(content), int64(len(content)), format)
				if got := DoubtsOf(d).Unusable; err != nil || !slices.Equal(got, want) {
					t.Errorf("of a %s it says %q, %v", format, got, err)
				}
			}
		})
	}
}

// Names in a tar may be longer than the compressed tar: add keeps none of them. The limit of all names
// together bounds what addUnpacked keeps.
func TestNamesInATarAreNotKept(t *testing.T) {
	var m moduleFinder
	name := "a/" + strings.Repeat("x", 1<<20)
	used := allocated(func() {
		for range 50 {
			m.add(name)
		}
	})
	if used > 1<<20 {
		t.Errorf("it took %d bytes", used)
	}
}

func TestModuleFormats(t *testing.T) {
	for name, want := range map[string]string{
		"1.0.0.tar.gz": "1.0.0 tar.gz 0", "1.0.0.tgz": "1.0.0 tar.gz 1", "1.0.0.zip": "1.0.0 zip 2", "v1.0.tgz": "v1.0 tar.gz 1",
		"1.0.0.tar": "", "1.0.0.tar.xz": "", "1.0.0.gz": "", "README.md": "", "1.0.0.TGZ": "",
	} {
		text, format, preference, ok := address.ParseModuleFile(name)
		got := fmt.Sprintln(text, format, preference)
		if !ok {
			got = ""
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// Clients can unpack every archive that is accepted without leaving the folder, and
// find configuration in it.
func FuzzDigestModuleArchive(f *testing.F) {
	f.Add(zipOf("main.tf", "x"), true)
	f.Add(zipOf("a/../main.tf", "x"), true)
	f.Add(zipOf("vpc/main.tf", "x"), true)
	f.Add(gzipOf(tarOf(named("./", "./main.tf")...)), false)
	f.Add(gzipOf(tarOf(named("../main.tf")...)), false)
	f.Add(gzipOf(tarOf(tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, tar.Header{Name: "main.tf", Typeflag: tar.TypeReg})), false)
	f.Add(withSparse("a.tf", 1<<20, "x"), false)
	// The tar is fuzzed: gzip's checksum would fail on every change.
	f.Add(tarOf(named("main.tf")...), false)
	f.Add(tarOf(tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}, tar.Header{Name: "main.tf"}), false)
	f.Fuzz(func(t *testing.T, content []byte, isZip bool) {
		format := "zip"
		if !isZip {
			format = "tar.gz"
			if !bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
				content = gzipOf(content)
			}
		}
		rejected := moduleFinding(content, format) != nil
		describeArchive(t, content, isZip)
		if rejected || isZip {
			return
		}
		z, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		configured := false
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag == tar.TypeXGlobalHeader {
				continue
			}
			if slices.Contains(strings.Split(h.Name, "/"), "..") || path.IsAbs(h.Name) {
				t.Errorf("%q is accepted", h.Name)
			}
			configured = configured || moduledoc.IsConfiguration(h.Name)
		}
		if !configured {
			t.Error("there is no configuration in it")
		}
	})
}
