package publish

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// lfsPointer begins a file of Git LFS in a repository, and in a checkout without Git LFS. The
// whole pointer is shorter than maxLFSPointer bytes.
const (
	lfsPointer    = "version https://git-lfs.github.com/spec/"
	maxLFSPointer = 1 << 10
)

// maxUnfit is how many problems of one package are listed.
const maxUnfit = 20

// unfitPackage returns problems, in sentences, of a module that works where it was written and
// fails for its users: calls of modules beside it, which are not in its package, and pointers
// of Git LFS. It reads the packed .tar.gz, and so ignores files that are left out of the
// package.
func unfitPackage(packed io.Reader) (unfit []string, err error) {
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	err = archive.WalkTar(unpacked, func(header *tar.Header, content io.Reader) error {
		if header.Size < maxLFSPointer {
			b, err := io.ReadAll(content)
			if err != nil {
				return err
			}
			if bytes.HasPrefix(b, []byte(lfsPointer)) {
				unfit = append(unfit, fmt.Sprintf("%s is only the pointer to a file in Git LFS: publish a checkout in which git lfs pull was run, add the file without Git LFS, or name it in .terraformignore.", cli.Printable(header.Name)))
				return nil
			}
			content = bytes.NewReader(b)
		}
		outside, err := callsOutside(header.Name, content)
		unfit = append(unfit, outside...)
		return err
	})
	return unfit[:min(len(unfit), maxUnfit)], err
}

// callsOutside returns the calls in a file of a package whose source is a folder outside of
// the package. Each file is read alone: the folder around it does not matter.
func callsOutside(name string, content io.Reader) (outside []string, err error) {
	if !moduledoc.IsConfiguration(name) {
		return nil, nil
	}
	var docs moduledoc.Collector
	if err := docs.Add(path.Base(name), content); err != nil {
		return nil, err
	}
	for _, c := range docs.Package("").Root.Calls {
		if leavesPackage(path.Dir(name), c.Source) {
			outside = append(outside, fmt.Sprintf("%s: the module %q has the source %q, which is not in the package: call that module by its address in a registry, move its folder into this module, or name the caller in .terraformignore.", cli.Printable(name), c.Name, c.Source))
		}
	}
	return outside, nil
}

// leavesPackage reports whether a source in a folder of a package is a path out of the
// package. Clients take other sources for addresses.
func leavesPackage(dir, source string) bool {
	source = strings.ReplaceAll(source, `\`, "/") // as on Windows
	if path.IsAbs(source) {
		return true
	}
	if !strings.HasPrefix(source, "./") && !strings.HasPrefix(source, "../") {
		return false
	}
	at := path.Join(dir, source)
	return at == ".." || strings.HasPrefix(at, "../")
}
