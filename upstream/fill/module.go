package fill

import (
	"context"
	"fmt"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// A FilledModule is the package of a module's version in the tree, though the index
// may not have seen it yet. Clients get its file as archive.tar.gz.
type FilledModule struct {
	Filled

	// Folder of the package in which the module lies; empty for the root.
	Folder string
}

// A wantedModule is a version of a module that is asked for.
type wantedModule struct {
	*Source
	releaseID
	number *version.Version
}

// fileID is what failures to get it are remembered by.
func (w *wantedModule) fileID() fileID { return fileID{w.Address, w.version} }

// wanted returns a version of a module, or why it is not mirrored.
func (f *Filler) wanted(a address.Address, text string) (*wantedModule, error) {
	s, err := f.source(a)
	if err != nil {
		return nil, err
	}
	v, err := address.ParseModuleVersion(text)
	if err != nil || !a.IsModule() {
		return nil, ErrNotMirrored
	}
	return &wantedModule{s, releaseID{a, v.String()}, v}, nil
}

// FillModule gets the package of a version of a module into the tree, and returns when
// it is there. It is fetched once for all callers, and goes on being fetched when they
// have left. The module as the index has it saves requests and reading; nil if it has
// none.
func (f *Filler) FillModule(ctx context.Context, a address.Address, version string, present *index.Module) (*FilledModule, error) {
	w, err := f.wanted(a, version)
	if err != nil {
		return nil, err
	}
	if v := present.Version(w.version); v != nil {
		if m := f.newFilledModule(v); m.unchanged() {
			return m, nil
		}
	}
	if m, ok := f.modules.get(w.releaseID); ok && m.unchanged() {
		return m, nil
	}
	if err, ok := f.unfilled.get(w.fileID()); ok {
		return nil, err
	}
	return f.fillingModules.do(ctx, w.String(), func(clients *upstream.Clients) (*FilledModule, error) {
		began := time.Now()
		v, fetched, err := f.fillModule(clients.Context(f.ctx), w)
		if err != nil {
			f.noteUnfilled(w.fileID(), began, err)
			return nil, err
		}
		m := f.newFilledModule(v)
		if !m.IsFolder() { // a folder may get more files
			f.modules.put(w.releaseID, m, filledLifetime)
		}
		f.keepRecordOf(a)
		if fetched {
			f.noteFilled(a, began, m.File)
		}
		fresh := *m
		fresh.New = true
		return &fresh, nil
	})
}

func (f *Filler) newFilledModule(v *index.ModuleVersion) *FilledModule {
	return &FilledModule{Filled{File: v.Archive, opener: f.opener}, v.Folder}
}

// ModuleFolder returns the Folder that the package of a version of a module has, or
// will have once it is in the tree. It asks the origin, and does not wait for the
// package.
func (f *Filler) ModuleFolder(ctx context.Context, a address.Address, version string) (string, error) {
	w, err := f.wanted(a, version)
	if err != nil {
		return "", err
	}
	if m, ok := f.modules.get(w.releaseID); ok {
		return m.Folder, nil
	}
	if folder, ok := f.folders.get(w.releaseID); ok {
		return folder, nil
	}
	if err, ok := f.unfilled.get(w.fileID()); ok {
		return "", err
	}
	return f.locating.do(ctx, w.String(), func(clients *upstream.Clients) (string, error) {
		ctx := clients.Context(f.ctx)
		err := f.mayCome(ctx, w)
		if err == nil {
			var s upstream.ModuleSource
			if s, err = f.locate(ctx, w); err == nil {
				return s.Folder, nil
			}
		}
		if !isForgotten(err) {
			f.unfilled.put(w.fileID(), err, lifetimeOf(err))
		}
		return "", err
	})
}

// locate asks the origin where the files of a module are.
func (f *Filler) locate(ctx context.Context, w *wantedModule) (upstream.ModuleSource, error) {
	s, err := w.Client.ModuleSource(ctx, w.Address, w.version)
	if err == nil {
		f.folders.put(w.releaseID, s.Folder, longLifetime)
	}
	return s, err
}

// mayCome returns why a version of a module may not come into the tree: its origin does
// not list it, it is too young, or it is withdrawn; nil if it may.
func (f *Filler) mayCome(ctx context.Context, w *wantedModule) error {
	_, listed, err := f.listed(ctx, w.Address, w.version)
	if err != nil {
		return err
	}
	if !listed {
		return fmt.Errorf("version %s: %w", w.version, ErrUnlisted)
	}
	return f.withdrawn(w.Address, w.number)
}
