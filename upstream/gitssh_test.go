package upstream_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

func newSSHKey(t *testing.T) (ssh.Signer, ed25519.PrivateKey) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer, key
}

// serveSSH serves a repository over SSH to one key, for any requested path.
func serveSSH(t *testing.T, r *upstreamtest.Repository, host ssh.Signer, user ssh.PublicKey) net.Listener {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !slices.Equal(key.Marshal(), user.Marshal()) {
			return nil, os.ErrPermission
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go uploadPack(c, config, r.Dir)
		}
	}()
	return listener
}

// uploadPack answers the command requests of one connection with git's upload-pack.
func uploadPack(c net.Conn, config *ssh.ServerConfig, dir string) {
	defer c.Close()
	_, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for n := range channels {
		channel, requests, err := n.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			r.Reply(r.Type == "exec", nil)
			if r.Type != "exec" {
				continue
			}
			cmd := exec.Command("git", "upload-pack", dir)
			cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
			input, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				return
			}
			go func() {
				io.Copy(input, channel)
				input.Close()
			}()
			cmd.Wait()
			channel.SendRequest("exit-status", false, []byte{0, 0, 0, 0})
			channel.Close()
		}
	}
}

// Repositories are fetched over SSH from hosts that are configured for it, with the
// configured key, and only if the host has the configured host key.
func TestGitModulesOverSSH(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "# 1\n")
	want := r.Commit("v1.0.0")
	hostKey, _ := newSSHKey(t)
	otherKey, otherPrivate := newSSHKey(t)
	userKey, private := newSSHKey(t)
	server := serveSSH(t, r, hostKey, userKey.PublicKey())
	folder := filepath.Join(t.TempDir(), "a folder's 100%")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		t.Helper()
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	keyFile := func(name string, key ed25519.PrivateKey) string {
		t.Helper()
		block, err := ssh.MarshalPrivateKey(key, "")
		if err != nil {
			t.Fatal(err)
		}
		return write(name, pem.EncodeToMemory(block))
	}
	key, wrongKey := keyFile("id", private), keyFile("other", otherPrivate)
	for _, test := range []struct {
		rule, source, host string
		known              ssh.PublicKey
		key                string
		kind               error
	}{
		{"a URL", "git::ssh://git@" + codeHost + "/acme/vpc.git?ref=v1.0.0", codeHost, hostKey.PublicKey(), key, nil},
		{"with a port", "git::ssh://git@" + codeHost + ":2222/acme/vpc.git?ref=v1.0.0", codeHost + ":2222", hostKey.PublicKey(), key, nil},
		{"as scp writes it", "git::git@" + codeHost + ":acme/vpc.git?ref=v1.0.0", codeHost, hostKey.PublicKey(), key, nil},
		{"another host's key", "git::ssh://git@" + codeHost + "/acme/vpc.git?ref=v1.0.0", codeHost, otherKey.PublicKey(), key, upstream.ErrMalformed},
		{"another user's key", "git::ssh://git@" + codeHost + "/acme/vpc.git?ref=v1.0.0", codeHost, hostKey.PublicKey(), wrongKey, upstream.ErrMalformed},
		{"another host", "git::ssh://git@other.example.com/acme/vpc.git?ref=v1.0.0", codeHost, hostKey.PublicKey(), key, upstream.ErrUnsafe},
	} {
		t.Run(test.rule, func(t *testing.T) {
			known := write("known_hosts", []byte(knownhosts.Line([]string{test.host}, test.known)+"\n"))
			c := newClient(t, upstream.Origin{
				Hostname: host,
				Hosts:    []upstream.Host{{Name: test.host, SSHKey: test.key, KnownHosts: known}},
			}, upstream.Network{Connect: func(ctx context.Context, d *net.Dialer, network, _ string) (net.Conn, error) {
				return d.DialContext(ctx, network, server.Addr().String())
			}})
			got, err := c.FetchModule(t.Context(), gitSource(t, test.source), t.TempDir())
			if test.kind != nil {
				mustFail(t, err, test.kind, "")
			} else if err != nil || got.Commit != want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
