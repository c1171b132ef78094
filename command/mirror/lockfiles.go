package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// readLockFile reads a lock file. It may be a pipe.
func readLockFile(name string) ([]lockfile.Locked, error) {
	if extension := filepath.Ext(strings.TrimSuffix(name, ".json")); extension == ".tf" || extension == ".tofu" {
		return nil, fmt.Errorf("%s is part of a configuration: give the folder it is in", name)
	}
	return lockfile.Read(name)
}

// readProjects reads the lock files among the arguments and in folders among them. With
// modules, it also returns the folders with configurations, as a lock file does not say which
// modules are called. If a lock file cannot be read that is an error: releases that it names
// would be removed.
func readProjects(args []string, modules bool) (locks [][]pull.Lock, configurations []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, noSuchPath(arg)
		case err != nil:
			return nil, nil, err
		case modules && !info.IsDir():
			return nil, nil, fmt.Errorf("%s: a lock file does not name modules: with --modules, give the folder of its configuration", cli.Printable(arg))
		}
		found := projectSearch{files: []string{arg}}
		if info.IsDir() {
			if found, err = searchProjects(arg); err != nil {
				return nil, nil, err
			}
			if len(found.files) == 0 {
				return nil, nil, &pathError{arg, fmt.Errorf("%s: there is no %s in it or below: let the client's `init` write it", arg, lockfile.Name)}
			}
		}
		for _, file := range found.files {
			locked, err := readLockFile(file)
			if err != nil {
				return nil, nil, err
			}
			releases := make([]pull.Lock, len(locked))
			for i, l := range locked {
				releases[i] = pull.Lock{Address: l.Address, Version: l.Version}
			}
			locks = append(locks, releases)
		}
		configurations = append(configurations, found.configurations...)
	}
	return locks, configurations, nil
}

// searchProjects finds the lock files and configurations in a folder and below, except those
// of installed modules. Symlinks are followed, and every folder is visited once.
func searchProjects(dir string) (projectSearch, error) {
	search := projectSearch{visited: make(map[string]bool)}
	err := search.folder(dir)
	return search, err
}

// A projectSearch finds lock files and configurations.
type projectSearch struct {
	visited        map[string]bool // folders, by their path without symlinks
	files          []string        // lock files
	configurations []string        // folders
}

func (s *projectSearch) folder(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || s.visited[real] {
		return err
	}
	s.visited[real] = true
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found, err := lockfile.HasConfiguration(dir)
	if err != nil {
		return err
	}
	if found {
		s.configurations = append(s.configurations, dir)
	}
	// Symlinks come last, so that a folder is found by its own name.
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return int(a.Type()&fs.ModeSymlink) - int(b.Type()&fs.ModeSymlink) })
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if e.Name() == ".terraform" || e.Name() == ".git" {
			continue
		}
		isFolder := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(name)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("%s: it is a dangling symlink, and its target may have had lock files: remove it, or restore its target", name)
			case err != nil:
				return err
			}
			isFolder = info.IsDir()
		}
		switch {
		case isFolder:
			if err := s.folder(name); err != nil {
				return err
			}
		case e.Name() == lockfile.Name:
			s.files = append(s.files, name)
		}
	}
	return nil
}

// A pathError is about an argument that is a path at which there is nothing to read.
type pathError struct {
	path string
	error
}

func (e *pathError) Unwrap() error { return e.error }

// noSuchPath is the error of a path that does not exist.
func noSuchPath(arg string) error {
	return &pathError{arg, fmt.Errorf("there is no file or folder %s", cli.Printable(arg))}
}
