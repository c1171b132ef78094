package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// uploading publishes a release by PUT with curl: first SHA256SUMS, whose time does not
// count, and then its package. The answer comes when clients are offered the release.
// In between, the server has written, synced, hashed and unpacked the package.
func uploading(_ context.Context, l *lab, s subject) ([]row, error) {
	timed, err := l.releaseToUpload("uploaded", l.archive)
	if err != nil {
		return nil, err
	}
	large, err := l.releaseToUpload("uploaded-large", l.large)
	if err != nil {
		return nil, err
	}
	return []row{
		{
			what: fmt.Sprintf("%s package published by PUT", inBytes(l.archive)), unit: "s", goal: goal{atMost: 1.1}, slowness: 3,
			cost: func(ctx context.Context) (seconds float64, err error) {
				err = l.uploadTo(ctx, s, func(c *caddy) error {
					if err := timed.uploadSums(ctx, c); err != nil {
						return err
					}
					seconds, err = timed.uploadPackage(ctx, c)
					return err
				})
				return seconds, err
			},
			against: "the slower of `unzip -p | sha256sum`, and `cp` with fsync and `sha256sum`",
			reference: func(ctx context.Context) (float64, error) {
				to := l.path("copied")
				defer os.Remove(to)
				unpacked, err := timeCommand(ctx, "sh", "-c", `unzip -p "$1" | sha256sum`, "sh", timed.file)
				if err != nil {
					return 0, err
				}
				copied, err := timeCommand(ctx, "sh", "-c", `sha256sum "$1" && cp "$1" "$2" && sync "$2"`, "sh", timed.file, to)
				return max(unpacked, copied), err
			},
		},
		{
			what: fmt.Sprintf("%s package published by PUT: peak heap above idle", inBytes(l.large)), unit: "B", goal: goal{atMost: 32e6}, slowness: 8,
			cost: func(ctx context.Context) (above float64, err error) {
				err = l.uploadTo(ctx, s, func(c *caddy) error {
					above, err = c.peakAboveIdle(ctx, func(ctx context.Context, c *caddy) error {
						if err := large.uploadSums(ctx, c); err != nil {
							return err
						}
						_, err := large.uploadPackage(ctx, c)
						return err
					})
					return err
				})
				return above, err
			},
		},
	}, nil
}

// An uploadedRelease is a release with one package.
type uploadedRelease struct {
	provider
	lab        *lab
	file, sums string
}

func (l *lab) releaseToUpload(name string, size int64) (*uploadedRelease, error) {
	p := bigProvider("big", size, 1).hosted()
	p.documents = unsigned
	dir, err := l.folder(name, func(dir string) error { return p.write(dir, l.key) })
	if err != nil {
		return nil, err
	}
	r := &uploadedRelease{provider: p, lab: l, file: p.packageFile(dir, p.versions[0])}
	r.sums = strings.TrimSuffix(r.file, "linux_amd64.zip") + "SHA256SUMS"
	return r, nil
}

// uploadTo runs a registry over an empty tree, to which anyone may publish.
func (l *lab) uploadTo(ctx context.Context, s subject, f func(*caddy) error) error {
	root := l.path("published-" + s.name)
	defer os.RemoveAll(root)
	if err := errors.Join(os.RemoveAll(root), os.MkdirAll(root, 0o755)); err != nil {
		return err
	}
	rule := func(right string) map[string]any {
		return map[string]any{"effect": "allow", "who": "anonymous", "right": right, "addresses": []string{"*"}}
	}
	h := l.registry(root).with("publish", map[string]any{}).
		with("access", map[string]any{"rules": []any{rule("read"), rule("publish")}})
	return l.fresh(ctx, s, h, func(c *caddy) error {
		if _, err := c.await(ctx, "site", "/.well-known/terraform.json", (*answer).ok); err != nil {
			return err
		}
		return f(c)
	})
}

func (r *uploadedRelease) uploadSums(ctx context.Context, c *caddy) error {
	_, err := r.upload(ctx, c, r.sums, "202")
	return err
}

func (r *uploadedRelease) uploadPackage(ctx context.Context, c *caddy) (seconds float64, err error) {
	return r.upload(ctx, c, r.file, "201")
}

// upload has curl send a file, and checks the status of the answer.
func (r *uploadedRelease) upload(ctx context.Context, c *caddy, file, status string) (seconds float64, err error) {
	url := "http://" + c.addresses["site"] + r.originPath(r.versions[0]+"/"+filepath.Base(file))
	curl := exec.CommandContext(ctx, "curl", "--disable", "--noproxy", "*", "--silent", "--show-error",
		"--upload-file", file, "--output", os.DevNull, "--write-out", "%{http_code} %{time_total}", url)
	curl.Stderr = os.Stderr
	out, err := curl.Output()
	if err != nil {
		return 0, fmt.Errorf("curl %s: %w", url, err)
	}
	var got string
	if _, err := fmt.Sscan(string(out), &got, &seconds); err != nil || got != status {
		return 0, fmt.Errorf("curl %s: %s, want %s", url, out, status)
	}
	return seconds, nil
}
