package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Of the project that is verified.
const (
	verifiedModules   = 200
	verifiedProviders = 30
)

// verifying runs `verify` in a project whose modules and providers a client has installed
// from a registry with a log. The first run fills the cache, and does not count.
func verifying(ctx context.Context, l *lab, s subject) ([]row, error) {
	modules, providers := verifiedModules, verifiedProviders
	if l.quick {
		modules, providers = 5, 2
	}
	t, err := l.tree(l.packages[len(l.packages)-1])
	if err != nil {
		return nil, err
	}
	h := logged(l.registry(t.root)).with("hostname", []string{host})
	c, err := l.caddy(ctx, s, "verified", false, site{name: "site", handler: h}, site{name: "tls", tls: true, handler: h})
	if err != nil {
		return nil, err
	}
	l.cleanup(c.stop)
	if err := c.records(ctx, t); err != nil {
		return nil, err
	}
	project, err := l.folder("project", func(dir string) error {
		return errors.Join(t.installModules(dir, modules), c.installProviders(ctx, t, dir, providers))
	})
	if err != nil {
		return nil, err
	}
	home := l.storage(s, "verifier")
	configuration := filepath.Join(home, "cli.tfrc")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	services := "https://" + c.addresses["tls"] + "/v1/"
	content := fmt.Sprintf("host %q {\n\tservices = {\n\t\t\"modules.v1\" = %q\n\t\t\"providers.v1\" = %q\n\t\t\"tlog.v1\" = %q\n\t}\n}\n",
		host, services+"modules/", services+"providers/", services+"tlog/")
	if err := os.WriteFile(configuration, []byte(content), 0o600); err != nil {
		return nil, err
	}
	verify := func(ctx context.Context) (float64, error) {
		command := exec.CommandContext(ctx, s.binary, "terraform-registry", "verify", project)
		command.Env = append(l.environment(home), "TF_CLI_CONFIG_FILE="+configuration)
		var findings bytes.Buffer
		command.Stdout = &findings
		seconds, err := timeOf(command)
		if err != nil {
			err = fmt.Errorf("%w%s", err, findings.Bytes())
		}
		return seconds, err
	}
	if _, err := verify(ctx); err != nil {
		return nil, err
	}
	return []row{{
		what: fmt.Sprintf("verify of %d modules and %d providers, with a warm cache", modules, providers), unit: "s", goal: goal{atMost: 1},
		cost: verify,
	}}, nil
}

// installModules unpacks modules of a tree below a folder, as clients do.
func (t *tree) installModules(dir string, count int) error {
	type call struct{ Key, Source, Version, Dir string }
	calls := []call{{Dir: "."}}
	for n := range count {
		m := module{fmt.Sprintf("team%02d", n/versionsEach%17), fmt.Sprintf("network%04d", n/versionsEach), nil}
		version := versions(versionsEach)[n%versionsEach]
		packed, err := os.Open(filepath.Join(t.root, "modules", m.namespace, m.name, "aws", version+".tar.gz"))
		if err != nil {
			return err
		}
		key := fmt.Sprintf("m%d", n)
		installed := ".terraform/modules/" + key
		err = unpackModule(packed, filepath.Join(dir, installed))
		if err := errors.Join(err, packed.Close()); err != nil {
			return err
		}
		calls = append(calls, call{key, host + "/" + m.namespace + "/" + m.name + "/aws", version, installed})
	}
	manifest, err := json.Marshal(map[string]any{"Modules": calls})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".terraform", "modules", "modules.json"), manifest, 0o644)
}

func unpackModule(from io.Reader, dir string) error {
	z, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := copyTo(filepath.Join(dir, filepath.FromSlash(header.Name)), r, 0o644); err != nil {
			return err
		}
	}
}

// installProviders unpacks hosted providers of a tree below a folder, and locks them.
func (c *caddy) installProviders(ctx context.Context, t *tree, dir string, count int) error {
	const platform = "linux_amd64"
	var lock strings.Builder
	for _, p := range t.providers {
		if p.hostname != "" || count == 0 {
			continue
		}
		count--
		version := p.versions[0]
		a, err := c.get(ctx, "site", p.mirrorPath(version+".json"), "")
		if err != nil {
			return err
		}
		var release struct {
			Archives map[string]struct{ Hashes []string }
		}
		if err := json.Unmarshal(a.body, &release); err != nil {
			return err
		}
		source := strings.Join([]string{host, p.namespace, p.typ}, "/")
		hashes, err := json.Marshal(release.Archives[platform].Hashes)
		if err != nil {
			return err
		}
		fmt.Fprintf(&lock, "provider %q {\n  version = %q\n  hashes = %s\n}\n", source, version, hashes)
		packed := p.dir(t.root)
		if p.folders {
			packed = filepath.Join(packed, version)
		}
		installed := filepath.Join(dir, ".terraform", "providers", filepath.FromSlash(source), version, platform)
		if err := unpackProvider(filepath.Join(packed, p.packageName(version, platform)), installed); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, ".terraform.lock.hcl"), []byte(lock.String()), 0o644)
}

func unpackProvider(file, dir string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, member := range z.File {
		r, err := member.Open()
		if err != nil {
			return err
		}
		err = copyTo(filepath.Join(dir, filepath.FromSlash(member.Name)), r, 0o755)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

func copyTo(file string, from io.Reader, mode os.FileMode) error {
	content, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, mode))
}
