package treetest

import (
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
)

// On returns the part that is a directory of a file system, such as one in memory.
func On(fsys afero.Fs, dir string) tree.Part {
	return tree.Part{Storage: disk.Folder{Fs: fsys, Dir: dir}}
}

// FsOf returns the file system of a part of On, or of a part on the local disk.
func FsOf(p tree.Part) afero.Fs { return p.Storage.(disk.Folder).Fs }

// Wrap has a part of On, or one on the local disk, use a file system around its own.
func Wrap(p *tree.Part, around func(afero.Fs) afero.Fs) {
	d := p.Storage.(disk.Folder)
	d.Fs = around(d.Fs)
	p.Storage = d
}
