package pull

import (
	"context"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// A FilledModule is the package of a module's version in the tree. The index may not
// have seen it yet. Clients get its file as archive.tar.gz.
type FilledModule struct {
	Filled

	// Folder of the module in the package; empty for the root.
	Folder string
}

// A moduleRequest is a request for a version of a module.
type moduleRequest struct {
	*Source
	releaseID
	number *version.Version
}

// fileID returns the ID under which failures are remembered.
func (w *moduleRequest) fileID() fileID { return fileID{w.Address, w.version} }

// moduleRequest returns the request for a version of a module. The error says why the
// version is not mirrored.
func (f *Filler) moduleRequest(a address.Address, text string) (*moduleRequest, error) {
	s, err := f.source(a)
	if err != nil {
		return nil, err
	}
	v, err := address.ParseModuleVersion(text)
	if err != nil || !a.IsModule() {
		return nil, ErrNotMirrored
	}
	return &moduleRequest{s, releaseID{a, v.String()}, v}, nil
}

// FillModule adds the package of a version of a module to the tree, and returns when it
// is there. The package is fetched once for all callers, and the fetch continues when
// they have left. present is the module in the index, which saves requests and reading;
// it may be nil.
func (f *Filler) FillModule(ctx context.Context, a address.Address, version string, present *index.Module) (*FilledModule, error) {
	w, err := f.moduleRequest(a, version)
	if err != nil {
		return nil, err
	}
	if v := present.Version(w.version); v != nil {
		if m := f.newFilledModule(v); m.unchanged() {
			return m, nil
		}
	}
	if m, ok := f.modules.Get(w.releaseID); ok && m.unchanged() {
		return m, nil
	}
	if err := f.unfilled.refusal(ctx, f, a, w.fileID()); err != nil {
		return nil, err
	}
	return f.fillingModules.Do(ctx, w.releaseID, func(clients *upstream.Clients) (*FilledModule, error) {
		began := time.Now()
		v, fetched, err := f.fillModule(clients.Context(f.ctx), w)
		if err == nil {
			err = f.awaitRecord(a, w.version, address.Platform{})
		}
		if err != nil {
			f.noteUnfilled(w.fileID(), began, err, 0)
			return nil, err
		}
		m := f.newFilledModule(v)
		if !m.IsFolder() { // a folder may get more files
			f.modules.Put(w.releaseID, m, filledLifetime)
		}
		f.keepRecordOf(a)
		if fetched {
			f.noteFilled(a, began, m.File, 0)
		}
		fresh := *m
		fresh.New = true
		return &fresh, nil
	})
}

func (f *Filler) newFilledModule(v *index.ModuleVersion) *FilledModule {
	return &FilledModule{Filled{File: v.Archive, opener: f.opener}, v.Folder}
}

// ModuleFolder returns the Folder of the package of a version of a module, which need
// not be in the tree yet. It asks the origin, and does not wait for the package.
func (f *Filler) ModuleFolder(ctx context.Context, a address.Address, version string) (string, error) {
	w, err := f.moduleRequest(a, version)
	if err != nil {
		return "", err
	}
	if m, ok := f.modules.Get(w.releaseID); ok {
		return m.Folder, nil
	}
	if folder, ok := f.folders.Get(w.releaseID); ok {
		return folder, nil
	}
	if err := f.unfilled.refusal(ctx, f, a, w.fileID()); err != nil {
		return "", err
	}
	return f.locating.Do(ctx, w.releaseID, func(clients *upstream.Clients) (string, error) {
		ctx := clients.Context(f.ctx)
		err := f.mayCome(ctx, w)
		if err == nil {
			var s upstream.ModuleSource
			if s, err = f.locate(ctx, w); err == nil {
				return s.Folder, nil
			}
		}
		f.unfilled.remember(w.fileID(), err)
		return "", err
	})
}

// locate asks the origin for the location of a module's files.
func (f *Filler) locate(ctx context.Context, w *moduleRequest) (s upstream.ModuleSource, err error) {
	if w.Hostname == "" {
		s, err = f.atTag(ctx, w)
	} else {
		s, err = w.Client.ModuleSource(ctx, w.Address, w.version)
	}
	if err == nil {
		f.folders.Put(w.releaseID, s.Folder, longLifetime)
	}
	return s, err
}

// mayCome returns why a version of a module may not be fetched: its origin does not
// list it, or the version is too young or withdrawn. It returns nil otherwise.
func (f *Filler) mayCome(ctx context.Context, w *moduleRequest) error {
	if _, err := f.mustList(ctx, w.Address, w.version); err != nil {
		return err
	}
	return f.withdrawn(w.Address, w.number)
}
