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
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// readLockFile reads a lock file. It may be a pipe.
func readLockFile(name string) ([]lockfile.Locked, error) {
	if extension := filepath.Ext(strings.TrimSuffix(name, ".json")); extension == ".tf" || extension == ".tofu" {
		return nil, fmt.Errorf("%s is part of a configuration: give the folder it is in", name)
	}
	return lockfile.Read(name)
}

// readLockFiles reads the lock files of the arguments and of folders among them. If
// one cannot be read that is an error: releases that it names would be removed.
func readLockFiles(args []string) (locks [][]fill.Lock, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, noSuchPath(arg)
		case err != nil:
			return nil, err
		}
		files := []string{arg}
		if info.IsDir() {
			if files, err = lockFilesIn(arg); err != nil {
				return nil, err
			}
			if len(files) == 0 {
				return nil, fmt.Errorf("%s: there is no %s in it or below: let the client's `init` write it", arg, lockfile.Name)
			}
		}
		for _, file := range files {
			locked, err := readLockFile(file)
			if err != nil {
				return nil, err
			}
			releases := make([]fill.Lock, len(locked))
			for i, l := range locked {
				releases[i] = fill.Lock{Address: l.Address, Version: l.Version}
			}
			locks = append(locks, releases)
		}
	}
	return locks, nil
}

// lockFilesIn finds the lock files in a folder and below, except those of installed
// modules. Symlinks are followed, and every folder is visited once.
func lockFilesIn(dir string) ([]string, error) {
	search := projectSearch{visited: make(map[string]bool)}
	err := search.folder(dir)
	return search.files, err
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

// noSuchPath is the error of a path that does not exist.
func noSuchPath(arg string) error {
	return fmt.Errorf("there is no file or folder %s", cli.Printable(arg))
}
