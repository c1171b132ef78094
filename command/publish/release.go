package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Fixed names of files of GoReleaser, and of its configuration for providers.
const (
	artifactsName    = "artifacts.json"
	manifestTemplate = "terraform-registry-manifest.json" // released as …_manifest.json
)

// maxReleaseDocument bounds SHA256SUMS, its signature and a manifest, in bytes. No registry
// takes more.
const maxReleaseDocument = 1 << 20

// A releaseReader reads the release of a provider in a folder.
type releaseReader struct {
	release
	dir  string
	sums wire.Checksums // of the packages, and of the manifest if there is no SHA256SUMS
}

// readRelease reads and checks the release of a provider in a folder. version may be empty if
// there is only one. The release has the reasons why it cannot be published. It is an error if
// there is no such release.
func readRelease(ctx context.Context, a address.Address, version, dir string) (release, error) {
	files, refused, err := listRelease(a, version, dir)
	if err != nil {
		return release{}, err
	}
	r := releaseReader{dir: dir, sums: make(wire.Checksums)}
	r.address, r.version = a, files.version
	for _, p := range refused {
		p.Address, p.Version = a.String(), r.version
		r.problems = append(r.problems, p)
	}
	if err := r.readPackages(ctx, files.paths); err != nil {
		return release{}, err
	}
	r.readDocuments(files.paths)
	slices.SortFunc(r.files, func(x, y upload) int { return strings.Compare(x.Name, y.Name) })
	return r.release, nil
}

// releaseFiles are the paths of the files of a release, by name.
type releaseFiles struct {
	version string
	paths   map[string]string
}

// listRelease finds the files of a version by their names. Files that are evidently meant for
// a release, but have a wrong name, are refused.
func listRelease(a address.Address, wanted, dir string) (files releaseFiles, refused []index.Problem, err error) {
	paths, err := listDist(dir)
	if err != nil {
		return files, nil, err
	}
	byVersion := make(map[string]map[string]string)
	var versions []*version.Version
	var others []string // types of other providers
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		f, err := address.ParseReleaseFile(a.Name, name)
		typ, isRelease := address.ReleaseFileType(name)
		switch {
		case err == nil:
			v := f.Version.String()
			if byVersion[v] == nil {
				byVersion[v] = make(map[string]string)
				versions = append(versions, f.Version)
			}
			byVersion[v][name] = paths[name]
		case isRelease && typ != a.Name:
			others = append(others, typ)
		case errors.Is(err, address.ErrVersion), errors.Is(err, address.ErrPackageName):
			refused = append(refused, index.Problem{Path: filepath.ToSlash(paths[name]), Reason: tree.BadName, Detail: err.Error()})
		}
	}
	address.SortNewestFirst(versions, func(v *version.Version) *version.Version { return v })
	if wanted == "" && len(versions) == 1 {
		wanted = versions[0].String()
	}
	var names []string
	for _, v := range versions {
		names = append(names, v.String())
	}
	switch {
	case byVersion[wanted] != nil:
		return releaseFiles{wanted, byVersion[wanted]}, refused, nil
	case wanted != "" && len(names) > 0:
		return files, nil, fmt.Errorf("%s has no version %s of %s, only %s", cli.Printable(dir), wanted, a, cli.List(names))
	case len(names) > 0:
		return files, nil, fmt.Errorf("%s has the versions %s: name one of them by --version", cli.Printable(dir), cli.List(names))
	case len(refused) > 0:
		return files, nil, fmt.Errorf("%s has no release of %s: %s: %s", cli.Printable(dir), a, cli.Printable(filepath.Base(refused[0].Path)), refused[0].Detail)
	case len(others) > 0:
		return files, nil, fmt.Errorf("%s has no release of %s, but of %s: name it by --to", cli.Printable(dir), a, cli.List(slices.Compact(others)))
	}
	return files, nil, fmt.Errorf("%s has no release of %s: its packages are named %s", cli.Printable(dir), a,
		address.PackageName(a.Name, cmp.Or(wanted, "VERSION"), address.Platform{OS: "OS", Arch: "ARCH"}))
}

// listDist returns the paths of files in a folder by name. In a folder of GoReleaser, these
// are the files of its last run.
func listDist(dir string) (paths map[string]string, err error) {
	content, err := os.ReadFile(filepath.Join(dir, artifactsName))
	if errors.Is(err, fs.ErrNotExist) {
		return listFolder(dir)
	}
	if err != nil {
		return nil, err
	}
	var artifacts []struct {
		Name string `json:"name"`
		Path string `json:"path"`
	}
	if err := json.Unmarshal(content, &artifacts); err != nil {
		return nil, fmt.Errorf("%s is not what GoReleaser writes: %w", cli.Printable(filepath.Join(dir, artifactsName)), err)
	}
	if paths, err = listFolder(dir); err != nil {
		return nil, err
	}
	listed := make(map[string]string)
	for _, a := range artifacts {
		if _, isRelease := address.ReleaseFileType(a.Name); isRelease {
			listed[a.Name] = locateArtifact(dir, a.Name, a.Path)
		}
	}
	// Files that the configuration adds to a release are no artifacts.
	for name, path := range paths {
		if strings.HasSuffix(name, "_manifest.json") {
			listed[name] = path
		}
	}
	return listed, nil
}

// locateArtifact returns the path of a file that GoReleaser lists. GoReleaser's path is
// relative to the project, which usually has dir as a folder. dir may also be a copy beside
// another build, so the files in dir count first.
func locateArtifact(dir, name, path string) string {
	_, within, _ := strings.Cut(path, "/") // the folder that was copied
	path = filepath.FromSlash(path)
	for _, candidate := range []string{filepath.Join(dir, name), filepath.Join(dir, filepath.FromSlash(within)), filepath.Join(dir, path), filepath.Join(dir, "..", path), path} {
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && filepath.Base(candidate) == name {
			return candidate
		}
	}
	return filepath.Join(dir, name)
}

func listFolder(dir string) (paths map[string]string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	paths = make(map[string]string)
	for _, e := range entries {
		if !e.IsDir() {
			paths[e.Name()] = filepath.Join(dir, e.Name())
		}
	}
	return paths, nil
}

func (r *releaseReader) problemIn(path string, reason tree.Reason, format string, args ...any) {
	r.problem(r.address, path, reason, fmt.Sprintf(format, args...))
}

// readPackages checks the packages as the registry would.
func (r *releaseReader) readPackages(ctx context.Context, paths map[string]string) error {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		if f, err := address.ParseReleaseFile(r.address.Name, name); err == nil && f.Kind == address.PackageFile {
			names = append(names, name)
		}
	}
	files, errs := make([]upload, len(names)), make([]error, len(names))
	cli.InParallel(runtime.GOMAXPROCS(0), len(names), func(i int) {
		files[i], errs[i] = readPackage(ctx, r.address, r.version, names[i], paths[names[i]])
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, name := range names {
		var bad *archive.PackageError
		switch err := errs[i]; {
		case errors.As(err, &bad):
			r.problemIn(paths[name], bad.Reason, "%s", bad.Detail)
		case errors.Is(err, publish.ErrRefused):
			r.problemIn(paths[name], tree.BadName, "%v", err)
		case err != nil:
			r.problemIn(paths[name], tree.Unreadable, "%v", err)
		}
		if files[i].sha256 != (wire.SHA256{}) {
			r.sums[name] = files[i].sha256
			r.files = append(r.files, files[i])
		}
	}
	return nil
}

// readPackage checks one package. The sha256 is set if the file could be read, even if
// it cannot be published.
func readPackage(ctx context.Context, a address.Address, version, name, path string) (p upload, err error) {
	if p.File, err = publish.ParseReleaseFile(a, version, name); err != nil {
		return p, err
	}
	f, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return p, err
	}
	digest, err := archive.CheckPackage(ctx, f, info.Size(), a.Name, p.Platform, wire.SHA256{})
	p.size, p.sha256, p.open = info.Size(), digest.SHA256, onDisk(path)
	return p, err
}

// readDocuments reads SHA256SUMS, its signature and the manifest, and compares the
// packages with them.
func (r *releaseReader) readDocuments(paths map[string]string) {
	sumsName, signatureName := address.ChecksumsName(r.address.Name, r.version), address.SignatureName(r.address.Name, r.version)
	manifestName := address.ManifestName(r.address.Name, r.version)
	if paths[sumsName] == "" {
		r.addManifest(paths[manifestName], nil)
		if paths[signatureName] != "" {
			r.problemIn(paths[signatureName], tree.BadChecksums, "it is the signature of %s, which is not there: build the release again", sumsName)
			return
		}
		r.makeChecksums(sumsName)
		return
	}
	content, ok := r.addDocument(sumsName, paths[sumsName])
	if !ok {
		return
	}
	listed, err := wire.DecodeChecksums(content)
	if err != nil {
		r.problemIn(paths[sumsName], tree.BadChecksums, "%v", err)
		return
	}
	r.addManifest(paths[manifestName], listed)
	r.compare(paths, listed)
	if paths[signatureName] == "" {
		return
	}
	if signature, ok := r.addDocument(signatureName, paths[signatureName]); ok && strings.HasPrefix(string(signature), "-----BEGIN") {
		r.problemIn(paths[signatureName], tree.BadSignature, "it is text, and clients read a binary signature: sign again without --armor")
	}
}

// compare compares the packages with SHA256SUMS.
func (r *releaseReader) compare(paths map[string]string, listed wire.Checksums) {
	packages := 0
	for name, sum := range listed {
		f, err := publish.ParseReleaseFile(r.address, r.version, name)
		if err != nil || f.Kind != publish.Package {
			continue
		}
		packages++
		switch found, ok := r.sums[name]; {
		case paths[name] == "":
			r.problemIn(filepath.Join(r.dir, name), tree.MissingPackage, "SHA256SUMS lists this package, and it is not there: build the release again")
		case ok && found != sum:
			r.problemIn(paths[name], tree.ChecksumMismatch, "its sha256 is %s, and SHA256SUMS lists %s: build the release again", found, sum)
		}
	}
	sumsPath := paths[address.ChecksumsName(r.address.Name, r.version)]
	if packages == 0 {
		r.problemIn(sumsPath, tree.BadChecksums, "it lists no package named %s", address.PackageName(r.address.Name, r.version, address.Platform{OS: "OS", Arch: "ARCH"}))
	}
	for name := range r.sums {
		if _, ok := listed[name]; !ok {
			r.problemIn(paths[name], tree.NotListed, "SHA256SUMS does not list it: build the release again")
		}
	}
	slices.SortStableFunc(r.problems, func(a, b index.Problem) int { return strings.Compare(a.Path, b.Path) })
}

// makeChecksums makes a SHA256SUMS of the files.
func (r *releaseReader) makeChecksums(name string) {
	file, err := publish.ParseReleaseFile(r.address, r.version, name)
	if err != nil {
		r.problemIn(r.dir, tree.BadVersion, "%v", err)
		return
	}
	content := r.sums.Encode()
	if len(content) == 0 {
		r.problemIn(r.dir, tree.Empty, "there is no package of version %s", r.version)
		return
	}
	r.files = append(r.files, upload{File: file, size: int64(len(content)), sha256: sha256.Sum256(content), open: inMemory(content)})
	r.notes = append(r.notes, "There is no SHA256SUMS, so it is made of "+cli.Count(len(r.sums), "file")+", and the registry signs the release.")
}

// addManifest adds the manifest. GoReleaser sums and uploads it from the project's folder as
// manifestTemplate, and leaves no copy in dist. So if path is empty, it is looked for there.
// listed is nil if there is no SHA256SUMS.
func (r *releaseReader) addManifest(path string, listed wire.Checksums) {
	name := address.ManifestName(r.address.Name, r.version)
	sum, isListed := listed[name]
	candidates := []string{path}
	if path == "" {
		candidates = []string{filepath.Join(r.dir, manifestTemplate), filepath.Join(r.dir, "..", manifestTemplate)}
		if isListed {
			candidates = append(candidates, manifestTemplate) // the sha256 tells whether it is that
		}
	}
	var unread error
	at := slices.IndexFunc(candidates, func(candidate string) bool {
		content, err := os.ReadFile(candidate)
		if path != "" || !errors.Is(err, fs.ErrNotExist) {
			unread = cmp.Or(unread, err)
		}
		return err == nil && (!isListed || sha256.Sum256(content) == sum)
	})
	switch {
	case at < 0 && unread != nil && (listed == nil || isListed):
		r.problemIn(cmp.Or(path, r.dir), tree.Unreadable, "the manifest cannot be read: %v", unread)
	case listed != nil && !isListed && path != "":
		r.problemIn(path, tree.NotListed, "SHA256SUMS does not list it: add it to the files whose checksums are released, and sign again")
	case listed != nil && !isListed && at >= 0:
		r.notes = append(r.notes, fmt.Sprintf("SHA256SUMS does not list %s, so that clients take the provider to speak protocol 5.0: add %s to the files whose checksums are released.", name, manifestTemplate))
	case listed != nil && !isListed, at < 0 && !isListed:
		// There is no manifest.
	case at < 0 && path != "":
		r.problemIn(path, tree.ChecksumMismatch, "SHA256SUMS lists it with the sha256 %s, which is not that of the file: build the release again", sum)
	case at < 0:
		r.problemIn(filepath.Join(r.dir, name), tree.MissingPackage, "SHA256SUMS lists this manifest, and neither it nor a %s with that sha256 is there: copy it there", manifestTemplate)
	default:
		content, ok := r.addDocument(name, candidates[at])
		if _, err := wire.DecodeManifest(content); ok && err != nil {
			r.problemIn(candidates[at], tree.BadManifest, "%v", err)
		}
		if ok && listed == nil {
			r.sums[name] = sha256.Sum256(content)
		}
	}
}

// addDocument adds a small file, and returns its content.
func (r *releaseReader) addDocument(name, path string) (content []byte, ok bool) {
	file, err := publish.ParseReleaseFile(r.address, r.version, name)
	if err != nil {
		r.problemIn(path, tree.BadName, "%v", err)
		return nil, false
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxReleaseDocument {
		r.problemIn(path, tree.TooLarge, "it is larger than %d bytes", maxReleaseDocument)
		return nil, false
	}
	if err == nil {
		content, err = os.ReadFile(path)
	}
	switch {
	case err != nil:
		r.problemIn(path, tree.Unreadable, "%v", err)
		return nil, false
	case len(content) == 0:
		r.problemIn(path, tree.Empty, "it is empty: build the release again")
		return nil, false
	}
	r.files = append(r.files, upload{File: file, size: int64(len(content)), sha256: sha256.Sum256(content), open: inMemory(content)})
	return content, true
}
