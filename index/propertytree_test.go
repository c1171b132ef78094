package index_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// The folders of the random tree. Some are spellings of one address, and some addresses are
// found both with and without HOSTNAME.
var (
	randomProviders = []string{
		"acme/demo", "acme/demo", "ACME/demo", "acme/other", "globex/demo",
		"registry.example.com/acme/demo", "registry.example.com/Acme/demo", "Registry.Example.com/acme/other", "mirror.example.com/acme/demo",
	}
	randomModules = []string{
		"acme/vpc/aws", "acme/vpc/aws", "acme/VPC/aws", "acme/net/gcp", "globex/vpc/aws",
		"registry.example.com/acme/vpc/aws", "mirror.example.com/acme/vpc/aws",
	}
	randomKeys      = []string{"acme.asc", "acme.asc", "ACME.asc", "globex.asc", "registry.example.com/acme.asc", "mirror.example.com/acme.asc"}
	randomVersions  = []string{"1.0.0", "1.1.0", "1.1.0+b1", "2.0.0-rc.1"}
	randomPlatforms = []string{"linux_amd64", "darwin_arm64", "windows_amd64"}
)

// The folders that no event touches: if a part became empty all at once, the index would
// take it for a volume that is not mounted.
const untouched = "untouched"

// A randomTree is a tree in which random events happen. It notes what they touch.
type randomTree struct {
	*indextest.Tree
	*rand.Rand

	dir    string           // on the local disk; empty elsewhere
	bucket *treetest.Bucket // nil elsewhere

	publishers []*indextest.Publisher
	writes     int             // number of files that were written
	metadata   map[string]bool // paths at which there was a registry.hcl
	touched    map[string]bool // paths of files since the last call of take
	events     []string
}

func newRandomTree(t *testing.T, seed int64, publishers []*indextest.Publisher) *randomTree {
	return &randomTree{
		Rand: rand.New(rand.NewSource(seed)), publishers: publishers,
		metadata: make(map[string]bool), touched: make(map[string]bool),
	}
}

// plant writes the files that no event touches.
func (r *randomTree) plant() {
	r.Provider(untouched+"/demo", "1.0.0", "linux_amd64")
	r.Write("modules/"+untouched+"/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# untouched\n"))
	if r.dir == "" {
		return
	}
	r.Write("pool/package.zip", indextest.ProviderZip("demo", "1.0.0", "linked")) // targets of symlinks
	r.Write("pool/module/main.tf", "# linked\n")
}

func (r *randomTree) note(format string, args ...any) {
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func one[T any](r *randomTree, list []T) T { return list[r.Intn(len(list))] }

// Read returns the content of a file.
func (r *randomTree) Read(name string) string { return r.Tree.Read(name) }

// chance is true in one of n cases.
func (r *randomTree) chance(n int) bool { return r.Intn(n) == 0 }

// write writes a file. No two writes leave the same time, since file systems without inodes
// have nothing else to tell a file from another one of its size.
func (r *randomTree) write(name, content string) {
	r.replaceLinks(name)
	r.Tree.Write(name, content)
	r.writes++
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(r.writes) * 3 * time.Second)
	if r.chance(4) { // the file may still be being written
		at = time.Now().Add(-time.Duration(r.writes) * time.Microsecond)
	}
	if err := r.Fs.Chtimes(name, at, at); err != nil {
		panic(err)
	}
	if path.Base(name) == tree.MetadataName {
		r.metadata[name] = true
	}
	r.touched[name] = true
	r.note("write %s, %d bytes", name, len(content))
}

// replaceLinks removes symlinks on the way to a file, so that writing it does not change
// the file or folder that they lead to.
func (r *randomTree) replaceLinks(name string) {
	if r.dir == "" {
		return
	}
	for i := range name + "/" {
		if i < len(name) && name[i] != '/' {
			continue
		}
		at := filepath.Join(r.dir, filepath.FromSlash(name[:i]))
		if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			r.remove(name[:i])
		}
	}
}

// remove removes a file or a folder.
func (r *randomTree) remove(name string) {
	for _, file := range r.filesBelow(name) {
		r.touched[file] = true
	}
	err := afero.Walk(r.Fs, name, func(folder string, _ fs.FileInfo, err error) error {
		if _, ok := addressOfPath(filepath.ToSlash(folder)); ok && err == nil { // perhaps an empty folder
			r.touched[filepath.ToSlash(folder)] = true
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	r.Tree.Remove(name)
	r.note("remove %s", name)
}

// removeEmptyFolders removes a folder that has no files, and notes the folders in it as
// touched.
func (r *randomTree) removeEmptyFolders(name string) {
	err := afero.Walk(r.Fs, name, func(folder string, _ fs.FileInfo, err error) error {
		if err == nil && folder != name {
			r.touched[filepath.ToSlash(folder)] = true
		}
		return nil
	})
	if err := errors.Join(err, os.RemoveAll(filepath.Join(r.dir, name))); err != nil {
		panic(err)
	}
}

// rename renames a file or a folder, and replaces a file or folder of the new name. A bucket
// and the memory have no folders to rename: there, each file is renamed.
func (r *randomTree) rename(from, to string) {
	if from == to || tree.IsBelow(to, from) || tree.IsBelow(from, to) {
		return
	}
	r.replaceLinks(to)
	if len(r.filesBelow(to)) > 0 {
		r.remove(to)
	}
	moved := r.filesBelow(from)
	for _, file := range moved {
		next := to + strings.TrimPrefix(file, from)
		if path.Base(file) == tree.MetadataName {
			if r.isDamaged(file) && r.metadata[next] { // see writeMetadata
				r.Tree.Remove(file)
				continue
			}
			r.metadata[next] = true
		}
		r.touched[file], r.touched[next] = true, true
	}
	r.note("rename %s to %s", from, to)
	if r.dir != "" {
		if err := r.Fs.MkdirAll(path.Dir(to), 0o755); err != nil {
			panic(err)
		}
		r.removeEmptyFolders(to)
		if err := r.Fs.Rename(from, to); err != nil {
			panic(err)
		}
		return
	}
	for _, file := range r.filesBelow(from) {
		info, err := r.Fs.Stat(file)
		if err != nil {
			panic(err)
		}
		next := to + strings.TrimPrefix(file, from)
		r.Tree.Write(next, r.Read(file))
		if err := r.Fs.Chtimes(next, info.ModTime(), info.ModTime()); err != nil {
			panic(err)
		}
	}
	r.Tree.Remove(from)
}

// link makes a symlink to a file or folder in the pool. It is absolute, so that it leads
// there wherever it is renamed to.
func (r *randomTree) link(name, target string) {
	r.replaceLinks(path.Dir(name))
	r.remove(name)
	at := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		panic(err)
	}
	if err := os.Symlink(filepath.Join(r.dir, target), at); err != nil {
		panic(err)
	}
	r.touched[name] = true
	r.note("link %s to %s", name, target)
}

// rewriteTarget changes what some symlinks lead to.
func (r *randomTree) rewriteTarget(target, content string) {
	r.Tree.Write(target, content)
	for _, file := range r.files() {
		to, err := os.Readlink(filepath.Join(r.dir, filepath.FromSlash(file)))
		if err == nil && tree.IsBelow(filepath.Join(r.dir, target), to) {
			r.touched[file] = true
		}
	}
	r.note("rewrite %s, to which symlinks lead", target)
}

// files returns all files in the parts of the tree that events may touch, sorted. A symlink
// is a file.
func (r *randomTree) files() (names []string) {
	if r.bucket != nil {
		names = r.bucket.Names()
	} else {
		for _, part := range []string{"providers", "modules", "keys", "incoming"} {
			afero.Walk(r.Fs, part, func(name string, info fs.FileInfo, err error) error {
				if err == nil && !info.IsDir() {
					names = append(names, filepath.ToSlash(name))
				}
				return nil
			})
		}
		slices.Sort(names)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "/"+untouched+"/") })
}

func (r *randomTree) filesBelow(dir string) []string {
	return slices.DeleteFunc(r.files(), func(name string) bool { return !tree.IsBelow(name, dir) })
}

// take returns the touched paths, sorted, and forgets them.
func (r *randomTree) take() (touched []string) {
	for name := range r.touched {
		touched = append(touched, name)
	}
	clear(r.touched)
	slices.Sort(touched)
	return touched
}

// event lets something happen in the tree.
func (r *randomTree) event() {
	switch n := r.Intn(100); {
	case n < 34:
		r.inProvider("providers/" + one(r, randomProviders))
	case n < 56:
		r.inModule("modules/" + one(r, randomModules))
	case n < 68:
		r.inKeys("keys/" + r.keysFile())
	case n < 86:
		r.toFile()
	case n < 96:
		r.toFolder()
	default:
		r.stray()
	}
}

// releaseFile returns the path of a file of a release.
func releaseFile(folder, version, suffix string, nested bool) string {
	if nested {
		folder = path.Join(folder, version)
	}
	return path.Join(folder, "terraform-provider-"+typeOf(folder)+"_"+version+suffix)
}

// typeOf returns the type of the provider in whose folder a path lies.
func typeOf(folder string) string {
	names := strings.Split(strings.TrimPrefix(folder, "providers/"), "/")
	if address.IsHostname(names[0]) {
		names = names[1:]
	}
	return strings.ToLower(names[1])
}

func (r *randomTree) packageZip(folder, version string) string {
	return indextest.ProviderZip(typeOf(folder), version, fmt.Sprint("kind ", r.Intn(4)))
}

func (r *randomTree) inProvider(folder string) {
	version, platform, nested := one(r, randomVersions), one(r, randomPlatforms), r.chance(3)
	sums := releaseFile(folder, version, "_SHA256SUMS", nested)
	switch r.Intn(16) {
	case 0, 1, 2, 3:
		r.write(releaseFile(folder, version, "_"+platform+".zip", nested), r.packageZip(folder, version))
	case 4, 5: // a whole release, signed
		r.write(releaseFile(folder, version, "_"+platform+".zip", nested), r.packageZip(folder, version))
		r.writeChecksums(sums)
		r.sign(sums)
	case 6:
		r.writeChecksums(sums)
	case 7:
		r.writeChecksums(sums)
		r.sign(sums)
	case 8:
		r.sign(sums)
	case 9:
		r.write(releaseFile(folder, version, "_manifest.json", nested), one(r, []string{`{"version":1,"metadata":{"protocol_versions":["5.0"]}}`, `{"version":1,"metadata":{"protocol_versions":["6.0"]}}`, "{"}))
	case 10: // damaged, or for another version's folder
		switch r.Intn(4) {
		case 0:
			r.write(releaseFile(folder, version, "_"+platform+".zip", nested), "no zip")
		case 1:
			r.write(releaseFile(folder, version, "_"+platform+".zip", nested), "")
		case 2:
			r.write(path.Join(folder, "1.0.0", "terraform-provider-"+typeOf(folder)+"_1.1.0_"+platform+".zip"), r.packageZip(folder, "1.1.0"))
		case 3:
			r.write(path.Join(folder, "dist", path.Base(releaseFile(folder, version, "_"+platform+".zip", false))), r.packageZip(folder, version))
		}
	case 11: // unpacked
		at := path.Join(folder, version, platform)
		r.write(path.Join(at, "terraform-provider-"+typeOf(folder)+"_v"+version), fmt.Sprintf("#!/bin/sh\n# %d\n", r.Intn(4)))
		if r.chance(2) {
			r.write(path.Join(at, "LICENSE"), fmt.Sprintf("license %d\n", r.Intn(4)))
		}
	case 12:
		layout := one(r, []string{"docs", "docs", "website/docs"})
		r.write(path.Join(folder, version, layout, one(r, []string{"index.md", "resources/thing.md", "r/thing.md"})), fmt.Sprintf("---\npage_title: page %d\n---\n# Page\n", r.Intn(4)))
	case 13, 14:
		r.writeMetadata(folder)
	case 15:
		r.write(path.Join(folder, one(r, []string{"notes.txt", ".hidden", "copy.zip.part", "index.json", "README.md", "1.0.0/main.tf", "1.x/notes.txt"})), fmt.Sprintf("%d\n", r.Intn(4)))
		if r.chance(3) && r.bucket == nil {
			r.mkdir(path.Join(folder, one(r, randomVersions)))
		}
	}
	if r.dir != "" && r.chance(12) {
		r.link(releaseFile(folder, "1.0.0", "_linux_amd64.zip", nested), "pool/package.zip")
	}
}

// writeChecksums writes the SHA256SUMS of the packages beside it, and sometimes another.
func (r *randomTree) writeChecksums(name string) {
	base := strings.TrimSuffix(name, "SHA256SUMS")
	var lines []string
	for _, file := range r.files() {
		if !strings.HasPrefix(file, base) || !strings.HasSuffix(file, ".zip") {
			continue
		}
		content := r.Read(file)
		if r.chance(8) {
			content = "another package"
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), path.Base(file)))
	}
	if r.chance(4) || len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(nil), path.Base(base)+"freebsd_amd64.zip"))
	}
	r.write(name, strings.Join(lines, ""))
}

func (r *randomTree) sign(checksums string) {
	if !slices.Contains(r.files(), checksums) {
		return
	}
	signature := one(r, r.publishers).Sign(r.Read(checksums))
	if r.chance(8) {
		signature = "no signature"
	}
	r.write(checksums+".sig", signature)
}

const damagedMetadata = "withdrawn \"1.0.0\" {\n  reason = \"half of it"

// isDamaged reports whether a registry.hcl cannot be read as a whole.
func (r *randomTree) isDamaged(name string) bool {
	content := r.Read(name)
	return content == damagedMetadata || content == ""
}

// writeMetadata writes the registry.hcl of a folder. It damages none that has been whole:
// then what the whole one said still counts, which a fresh scan cannot know.
func (r *randomTree) writeMetadata(folder string) {
	name := path.Join(folder, tree.MetadataName)
	contents := []string{
		"description = \"about it\"\nowner = \"a team\"\nsource = \"https://example.com/source\"\n",
		"deprecated \"1.0.0\" {\n  reason = \"old\"\n}\n",
		"deprecated \"1.1.0\" {\n  reason = \"old too\"\n  link = \"https://example.com/why\"\n}\ndescription = \"another\"\n",
		"withdrawn \"1.1.0\" {\n  reason = \"malware\"\n}\n",
		"withdrawn \"< 1.1.0\" {}\ndeprecated \">= 1.1.0\" {}\n",
		"owner = \"a team\"\ncolor = \"blue\"\n",
	}
	if !r.metadata[name] {
		contents = append(contents, damagedMetadata, "")
	}
	r.write(name, one(r, contents))
}

func (r *randomTree) inModule(folder string) {
	version := one(r, randomVersions)
	main := fmt.Sprintf("# kind %d\nvariable \"v%[1]d\" {}\n", r.Intn(4))
	switch r.Intn(12) {
	case 0, 1:
		r.write(path.Join(folder, version+".tar.gz"), indextest.TarGz("main.tf", main, "README.md", "# A module\n\nIt is "+main[2:8]+".\n"))
	case 2, 3:
		r.write(path.Join(folder, version+".zip"), indextest.Zip("main.tf", main))
	case 4: // the same version in two forms
		r.write(path.Join(folder, version+".zip"), indextest.Zip("main.tf", main))
		r.write(path.Join(folder, version+one(r, []string{".tar.gz", ".tgz"})), indextest.TarGz("main.tf", main))
	case 5, 6, 7:
		r.write(path.Join(folder, version, one(r, []string{"main.tf", "main.tf", "outputs.tf", "modules/subnet/main.tf", "README.md"})), main)
	case 8:
		r.write(path.Join(folder, version+one(r, []string{".zip", ".tar.gz"})), one(r, []string{"no archive", "", indextest.Zip("notes.txt", "x")}))
	case 9, 10:
		r.writeMetadata(folder)
	case 11:
		r.write(path.Join(folder, one(r, []string{"notes.txt", ".1.0.0.zip.tmp", "vpc-1.0.0/main.tf", "1.x.tar.gz", "main.tf", "old/1.0.0.zip"})), main)
		if r.chance(3) && r.bucket == nil {
			r.mkdir(path.Join(folder, version))
		}
	}
	if r.dir != "" && r.chance(12) {
		r.link(path.Join(folder, one(r, randomVersions)), "pool/module")
	}
}

func (r *randomTree) mkdir(name string) {
	r.replaceLinks(name)
	if err := r.Fs.MkdirAll(name, 0o755); err != nil {
		panic(err)
	}
	r.touched[name+"/"] = true
	r.note("make the folder %s", name)
}

// keysFile returns the path of a keys file, more often of a namespace with signed releases.
func (r *randomTree) keysFile() string {
	signed := slices.DeleteFunc(r.files(), func(name string) bool { return path.Ext(name) != ".sig" })
	if len(signed) > 0 && r.chance(2) {
		if a, ok := addressOfPath(one(r, signed)); ok {
			return path.Join(address.DisplayHostname(a.Hostname), a.Namespace+".asc")
		}
	}
	return one(r, randomKeys)
}

func (r *randomTree) inKeys(name string) {
	switch r.Intn(8) {
	case 0, 1, 2, 3:
		var keys strings.Builder
		for _, i := range r.Perm(len(r.publishers))[:1+r.Intn(2)] {
			keys.WriteString(r.publishers[i].PublicKey())
		}
		r.write(name, keys.String())
	case 4:
		r.write(name, "unsigned\n")
	case 5:
		r.write(name, one(r, []string{"", "no key"}))
	case 6:
		r.remove(name)
	case 7:
		r.write(path.Join(path.Dir(name), one(r, []string{"acme.gpg", "acme.txt", "globex/key.asc", ".tmp"})), one(r, []string{"text", r.publishers[0].PublicKey()}))
	}
}

// toFile changes, removes, renames or copies one file.
func (r *randomTree) toFile() {
	if r.dir != "" && r.chance(6) {
		if r.chance(2) {
			r.rewriteTarget("pool/package.zip", indextest.ProviderZip("demo", "1.0.0", fmt.Sprint("linked ", r.Int())))
		} else {
			r.rewriteTarget("pool/module/main.tf", fmt.Sprintf("# linked %d\n", r.Int()))
		}
		return
	}
	files := r.files()
	if len(files) == 0 {
		return
	}
	name := one(r, files)
	info, err := r.Fs.Stat(name)
	switch n := r.Intn(6); {
	case n < 2 || err != nil || info.IsDir(): // a symlink to a folder is only removed
		r.remove(name)
	case n == 2 && path.Base(name) != tree.MetadataName:
		other := one(r, files)
		if info, err := r.Fs.Stat(other); err == nil && !info.IsDir() {
			r.write(name, r.Read(other))
		}
	case n == 3:
		r.write(name, r.Read(name)) // touched
	case n == 4 && path.Base(name) != tree.MetadataName:
		r.rename(name, strings.ReplaceAll(strings.ReplaceAll(name, "1.1.0", "1.2.0"), "1.0.0", "1.1.0"))
	default:
		if typ, ok := address.ReleaseFileType(name); ok && path.Ext(name) == ".zip" {
			r.write(name, indextest.ProviderZip(typ, one(r, randomVersions), fmt.Sprint("kind ", r.Intn(4))))
		}
	}
}

// toFolder removes or renames a folder, or renames one into place.
func (r *randomTree) toFolder() {
	folders := r.folders()
	if len(folders) == 0 {
		return
	}
	folder := one(r, folders)
	part, rest, _ := strings.Cut(folder, "/")
	names := strings.Split(rest, "/")
	switch r.Intn(4) {
	case 0:
		r.remove(folder)
	case 1: // to another spelling, namespace, HOSTNAME, or none
		i := r.Intn(len(names))
		if address.IsHostname(names[i]) {
			if names[i] = one(r, []string{"mirror.example.com", "REGISTRY.example.com", ""}); len(names) == 1 && names[0] == "" {
				names[0] = "mirror.example.com"
			}
		} else {
			names[i] = one(r, []string{strings.ToUpper(names[i]), strings.ToLower(names[i]), names[i] + "2"})
		}
		r.rename(folder, path.Join(part, path.Join(names...)))
	case 2: // into place
		at := "incoming/modules/" + one(r, randomModules)
		if part == "providers" {
			at = "incoming/" + part + "/" + one(r, randomProviders)
			in := strings.TrimPrefix(at, "incoming/")
			for range 1 + r.Intn(3) {
				version := one(r, randomVersions)
				r.write(path.Join(at, path.Base(releaseFile(in, version, "_"+one(r, randomPlatforms)+".zip", false))), r.packageZip(in, version))
			}
		} else {
			for range 1 + r.Intn(3) {
				r.write(path.Join(at, one(r, randomVersions), "main.tf"), fmt.Sprintf("# staged %d\n", r.Intn(4)))
			}
		}
		r.rename(at, strings.TrimPrefix(at, "incoming/"))
	case 3: // under a temporary name
		r.rename(folder, path.Join(path.Dir(folder), "."+path.Base(folder)+".tmp"))
	}
}

// folders returns the folders of addresses, and the folders above them, sorted.
func (r *randomTree) folders() (folders []string) {
	for _, file := range r.files() {
		for dir := path.Dir(file); strings.Contains(dir, "/") && !strings.HasPrefix(dir, "incoming/"); dir = path.Dir(dir) {
			folders = append(folders, dir)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// stray puts a file or folder where there is no address.
func (r *randomTree) stray() {
	r.write(one(r, []string{
		"providers/notes.txt", "providers/acme/notes.txt", "providers/acme/registry.hcl", "modules/acme/main.tf", "modules/acme/vpc/1.0.0.zip",
		"providers/acme/1.0.0/terraform-provider-demo_1.0.0_linux_amd64.zip", "providers/acme/.new.tmp", "providers/bad_name/demo/notes.txt",
	}), fmt.Sprintf("stray %d\n", r.Intn(4)))
}
