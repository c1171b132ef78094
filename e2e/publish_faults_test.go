package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// rawConnection is a TLS connection to the registry, for requests that no library
// sends.
func (r *Registry) rawConnection(t *testing.T) net.Conn {
	t.Helper()
	return r.rawConnectionOver(t, func(c net.Conn) net.Conn { return c })
}

// rawConnectionOver is rawConnection over a connection that through wraps below TLS.
func (r *Registry) rawConnectionOver(t *testing.T, through func(net.Conn) net.Conn) net.Conn {
	t.Helper()
	client, err := r.client()
	if err != nil {
		t.Fatal(err)
	}
	transport := client.Transport.(*http.Transport)
	plain, err := transport.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	config := transport.TLSClientConfig.Clone()
	config.ServerName = "registry.example.com"
	connection := tls.Client(through(plain), config)
	if err := connection.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return connection
}

// An upload that is cut off at any point leaves nothing of its file.
func TestUploadsThatAreCutOff(t *testing.T) {
	t.Parallel()
	tokens, files, d := newTokens(t), newTree(t), newDist(t)
	token := tokens.New("ci")
	registry := startRegistry(t, site("registry.example.com", files, publishing(tokens)...))
	ci := registry.sender(t, token)
	defer registry.watch(t, d)()
	name := zipOfDemo("1.0.0", thisPlatform)
	content := d[name]
	for i := range 20 {
		connection := registry.rawConnection(t)
		fmt.Fprintf(connection, "PUT /v1/%s HTTP/1.1\r\nHost: registry.example.com\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", demoPath+name, token, len(content))
		if _, err := io.WriteString(connection, content[:len(content)*i/20]); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // as when the client is killed; otherwise, as when the connection breaks
			connection.(*tls.Conn).NetConn().Close()
		} else {
			connection.Close()
		}
	}
	eventually(t, "nothing is left", func() bool { return len(files.staged()) == 0 })
	answer, err := ci.do(http.MethodGet, demoPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.is(t, 404, "")
	for i, name := range d.names() {
		status := 202
		if i == len(d)-1 {
			status = 201
		}
		ci.put(t, demoPath+name, d[name]).is(t, status, `"status"`)
	}
	if !registry.sees(t, d) {
		t.Error("the release is not offered")
	}
	files.isPublished(d)
}

// A client that stalls, even in the middle of a record of TLS, is told after a minute
// that its file has not arrived.
func TestUploadsThatStall(t *testing.T) {
	t.Parallel()
	tokens, files := newTokens(t), newTree(t)
	token := tokens.New("ci")
	registry := startRegistry(t, site("registry.example.com", files, publishing(tokens)...))
	var stalled sync.WaitGroup
	for rule, limit := range map[string]int{"between two records": 1 << 30, "in a record": 100_001} {
		stalled.Go(func() {
			stalling := &stallingConnection{limit: limit}
			connection := registry.rawConnectionOver(t, func(c net.Conn) net.Conn {
				stalling.Conn = c
				return stalling
			})
			defer connection.Close()
			fmt.Fprintf(connection, "PUT /v1/modules/acme/vpc/aws/1.0.0.tar.gz HTTP/1.1\r\nHost: registry.example.com\r\nAuthorization: Bearer %s\r\nContent-Length: 1000000000\r\n\r\n", token)
			if _, err := connection.Write(make([]byte, 200_000)); err != nil {
				t.Error(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Errorf("%s: %v", rule, err)
				return
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != 400 || !strings.Contains(string(body), "the upload ended early: send the file again") {
				t.Errorf("%s: %d %s %v", rule, answer.StatusCode, body, err)
			}
		})
	}
	stalled.Wait()
	eventually(t, "nothing is left", func() bool { return len(files.staged()) == 0 })
}

// A stallingConnection sends at most limit bytes, and swallows the rest.
type stallingConnection struct {
	net.Conn
	limit int
}

func (c *stallingConnection) Write(b []byte) (int, error) {
	n := min(len(b), c.limit)
	c.limit -= n
	if n > 0 {
		if _, err := c.Conn.Write(b[:n]); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func TestUploadsThatAreRefused(t *testing.T) {
	t.Parallel()
	acme, stranger := publisher(t, "acme"), publisher(t, "stranger")
	tokens, files := newTokens(t), newTree(t).Keys("acme", acme)
	good, wrong := newDist(t, signedBy(acme)), newDist(t, signedBy(stranger))
	ciToken, otherToken := tokens.New("ci"), tokens.New("other")
	registry := startRegistry(t, site("registry.example.com", files, publishing(tokens)...))
	ci, other, anonymous := registry.sender(t, ciToken), registry.sender(t, otherToken), registry.sender(t, "")
	name, sums := zipOfDemo("1.0.0", thisPlatform), "terraform-provider-demo_1.0.0_SHA256SUMS"

	t.Run("by the rules, whether or not the version exists", func(t *testing.T) {
		for _, path := range []string{demoPath + name, "providers/acme/absent/1.0.0/terraform-provider-absent_1.0.0_linux_amd64.zip", "modules/acme/vpc/aws/1.0.0.tar.gz"} {
			anonymous.put(t, path, "x").is(t, 401, "send a token")
			other.put(t, path, "x").is(t, 403, "do not allow you to publish acme/")
			(&Sender{anonymous.client, anonymous.base, "made-up"}).put(t, path, "x").is(t, 401, "unknown, expired or revoked")
		}
		for _, path := range []string{demoPath, "providers/acme/absent/1.0.0/"} {
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				answer, err := anonymous.do(method, path, nil)
				if err != nil {
					t.Fatal(err)
				}
				answer.is(t, 401, "")
			}
		}
		files.isClean()
	})
	t.Run("a wrong checksum", func(t *testing.T) {
		ci.put(t, demoPath+name, good[name], "X-Checksum-Sha256", strings.Repeat("1", 64)).is(t, 422, `"message":"the file that arrived has the sha256`)
		ci.put(t, demoPath+name, good[name], "Digest", "sha-256="+strings.Repeat("Q", 43)+"=").is(t, 422, `{"errors":["the file that arrived has the sha256`)
		files.isClean()
	})
	t.Run("a wrong signature, and then the right one", func(t *testing.T) {
		for _, name := range good.names() {
			if !strings.HasSuffix(name, ".sig") {
				ci.put(t, demoPath+name, good[name]).is(t, 202, `"missing"`)
			}
		}
		ci.put(t, demoPath+sums+".sig", wrong[sums+".sig"]).is(t, 422, "not in the namespace's keys")
		if registry.sees(t, good) {
			t.Error("it is offered without its signature")
		}
		ci.put(t, demoPath+sums+".sig", good[sums+".sig"]).is(t, 201, `"published"`)
		files.isPublished(good)
	})
	t.Run("rights that are withdrawn between two uploads", func(t *testing.T) {
		path := "providers/acme/demo/2.0.0/terraform-provider-demo_2.0.0_manifest.json"
		content := `{"version":1,"metadata":{"protocol_versions":["6.0"]}}`
		ci.put(t, path, content).is(t, 202, "")
		tokens.Revoke("ci")
		eventually(t, "the token is refused", func() bool { return ci.put(t, path, content).Status == 401 })
		if staged := files.staged(); len(staged) != 1 {
			t.Errorf("staged are %v", staged)
		}
	})
}

// A path that is not the path of a file leads to no file anywhere.
func TestPathsOfUploads(t *testing.T) {
	t.Parallel()
	tokens, folders := newTokens(t), newTree(t)
	token := tokens.New("ci")
	registry := startRegistry(t, site("registry.example.com", folders, publishing(tokens)...))
	zip := newSmallDist(t, "")[zipOfDemo("1.0.0", "linux_amd64")]
	name := zipOfDemo("1.0.0", "linux_amd64")
	for _, target := range []string{
		"/v1/providers/acme/demo/1.0.0/../../../../" + name,
		"/v1/providers/acme/demo/../../../x/" + name,
		"/v1/providers/acme/demo/1.0.0/%2e%2e%2f" + name,
		"/v1/providers/acme/demo/..%2f..%2f1.0.0/" + name,
		"/v1/providers/acme/demo/1.0.0%2f..%2f1.0.0/" + name,
		"/v1/providers/acme%2fdemo/demo/1.0.0/" + name,
		"/v1/providers/acme/demo/1.0.0/" + name + "%00",
		"/v1/providers/acme/demo/1.0.0/" + name + "%00.zip",
		"/v1/providers/acme/demo/1.0.0%00/" + name,
		"/v1/providers/acme/demo/1.0.0/..%5c" + name,
		"/v1/providers/acme/demo/1.0.0/" + strings.ToUpper(name),
		"/v1/providers/acme/demo/1.0.0/%ff" + name,
		"/v1/providers/acme/demo/1.0.0/" + strings.Repeat("x", 10_000) + ".zip",
		"/v1/providers/acme/" + strings.Repeat("x", 200) + "/1.0.0/" + name,
		"/v1/providers/acme/demo/" + strings.Repeat("1", 200) + ".0.0/" + name,
		"/v1/providers/acme/demo/latest/" + name,
		"/v1/providers/acme/demo/1.1/" + name, // which is 1.1.0
		"/v1/providers/.staging/demo/1.0.0/" + name,
		"/v1/providers/acme/.staging/1.0.0/" + name,
		"/v1/providers/other.example.com/demo/1.0.0/" + name,
		"/v1/providers/acme/demo/1.0.0/docs/index.md",
		"/v1/providers/acme/demo/1.0.0/.hidden",
		"/v1/providers/acme/demo/1.0.0/index.json",
		"/v1/providers/acme/demo/index.json",
		"/v1/providers/acme/demo/versions",
		"/v1/providers/acme/demo/1.0.0/download/linux/amd64",
		"/v1/modules/acme/vpc/aws/../../../1.0.0.tar.gz",
		"/v1/modules/acme/vpc/aws/..%2f1.0.0.tar.gz",
		"/v1/modules/acme/vpc/aws/1.0.0.tar.gz%00",
		"/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz",
		"/v1/modules/acme/vpc/aws/.1.0.0.tar.gz",
		"/v1/mirror/registry.example.com/acme/demo/" + name,
		"/.well-known/terraform.json",
	} {
		connection := registry.rawConnection(t)
		fmt.Fprintf(connection, "PUT %s HTTP/1.1\r\nHost: registry.example.com\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", target, token, len(zip), zip)
		answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Errorf("%.200s: %v", target, err)
			continue
		}
		body, _ := io.ReadAll(answer.Body)
		connection.Close()
		if answer.StatusCode < 400 || answer.StatusCode >= 500 || bytes.Contains(body, []byte(folders.Dir)) || len(body) > 2000 {
			t.Errorf("%.200s: %d %.300s", target, answer.StatusCode, body)
		}
	}
	if files := folders.files(); len(files) > 0 {
		t.Errorf("the tree has %v", files)
	}
	folders.isClean()
}

// Many clients send two builds at once, through two instances that share the folder and
// the storage. One build wins.
func TestBuildsOfOneVersion(t *testing.T) {
	t.Parallel()
	tokens, files := newTokens(t), newTree(t)
	token := tokens.New("ci")
	s := site("registry.example.com", files, publishing(tokens)...)
	one := startRegistry(t, s)
	two := startBeside(t, one, s)
	builds := []Dist{newSmallDist(t, "one"), newSmallDist(t, "two")}
	stop := one.watch(t, builds[0])
	stopTwo := two.watch(t, builds[0])
	senders := []*Sender{one.sender(t, token), two.sender(t, token)}

	var group sync.WaitGroup
	var mutex sync.Mutex
	statuses := make(map[int]int)
	for i := range 100 {
		build := builds[i%2]
		name := build.names()[i/2%len(build)]
		group.Go(func() {
			answer, err := senders[i/4%2].do(http.MethodPut, demoPath+name, strings.NewReader(build[name]))
			if err != nil {
				t.Error(err)
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			statuses[answer.Status]++
		})
	}
	group.Wait()
	stop()
	stopTwo()
	for status := range statuses {
		if !slices.Contains([]int{200, 201, 202, 409, 422}, status) {
			t.Errorf("statuses %v", statuses)
		}
	}
	if statuses[201] != 1 {
		t.Errorf("%d have published it: %v", statuses[201], statuses)
	}
	winner := builds[0]
	if readFile(t, files.Path(demoPath+"terraform-provider-demo_1.0.0_SHA256SUMS")) == builds[1]["terraform-provider-demo_1.0.0_SHA256SUMS"] {
		winner = builds[1]
	}
	files.isPublished(winner)
	for _, name := range winner.names() {
		for _, sender := range senders {
			sender.put(t, demoPath+name, winner[name]).is(t, 200, `"published"`)
		}
	}
}

// After a server is killed, the tree has the acknowledged files, and no others.
func TestKilledWhilePublishing(t *testing.T) {
	t.Parallel()
	tokens, folders, d := newTokens(t), newTree(t), newDist(t)
	token := tokens.New("ci")
	s := site("registry.example.com", folders, publishing(tokens)...)
	registry := startRegistry(t, s)
	restart := func() { registry.start(t, []Site{s}) } // for as long as the whole test
	kill := func() {
		if err := registry.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-registry.ended
	}
	names := d.names()
	acknowledged, half := names[0], zipOfDemo("1.0.0", thisPlatform)
	if acknowledged == half {
		acknowledged = names[1]
	}

	t.Run("while a file arrives", func(t *testing.T) {
		registry.sender(t, token).put(t, demoPath+acknowledged, d[acknowledged]).is(t, 202, "")
		connection := registry.rawConnection(t)
		defer connection.Close()
		fmt.Fprintf(connection, "PUT /v1/%s HTTP/1.1\r\nHost: registry.example.com\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
			demoPath+half, token, len(d[half]), d[half][:len(d[half])/2])
		eventually(t, "half of it has arrived", func() bool {
			return slices.ContainsFunc(folders.staged(), func(name string) bool { return strings.HasSuffix(name, ".part") })
		})
		kill()
		folders.anHourPasses()
		restart()
		eventually(t, "the half is removed", func() bool {
			return !slices.ContainsFunc(folders.staged(), func(name string) bool { return strings.HasSuffix(name, ".part") })
		})
		answer, err := registry.sender(t, token).do(http.MethodGet, demoPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		if files := answer.publication(t).Files; len(files) != 1 || files[0].Name != acknowledged {
			t.Errorf("staged are %s", answer.Body)
		}
	})

	// The server is killed at some moment while the last files are sent, over and over.
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 6 {
		t.Run(fmt.Sprint("while it publishes, round ", round), func(t *testing.T) {
			var sending sync.WaitGroup
			ci := registry.sender(t, token)
			for _, name := range names {
				sending.Go(func() {
					_, _ = ci.do(http.MethodPut, demoPath+name, strings.NewReader(d[name])) // the server is killed
				})
			}
			eventually(t, "files arrive", func() bool { return len(folders.staged()) > 1 || len(published(folders)) > 0 })
			time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond) // the moment of the fault
			kill()
			sending.Wait()
			if files := published(folders); len(files) != 0 && len(files) != len(d) {
				t.Errorf("a part of the release is in the tree: %v", files)
			}
			folders.anHourPasses()
			restart()
			ci = registry.sender(t, token)
			last := 0
			for _, name := range names {
				last = ci.put(t, demoPath+name, d[name]).Status
				if last != 200 && last != 201 && last != 202 {
					t.Errorf("%s: %d", name, last)
				}
			}
			if !registry.sees(t, d) {
				t.Error("the release is not offered")
			}
			// This includes empty folders, once the lock of the killed server has
			// expired.
			eventually(t, "nothing is left", func() bool {
				_, err := os.Stat(folders.Path("providers/.staging"))
				return os.IsNotExist(err)
			})
			folders.isPublished(d)
			if err := os.RemoveAll(folders.Path(demoPath)); err != nil { // by its operator
				t.Fatal(err)
			}
			eventually(t, "it is gone", func() bool { return !registry.sees(t, d) })
		})
	}
}

// published returns the names of the files in the version's folder.
func published(files *Tree) (names []string) {
	entries, _ := os.ReadDir(files.Path(demoPath))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A full disk refuses files that do not fit, and reading goes on.
func TestPublishingOnAFullDisk(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("not run, because only root on Linux can mount a small disk")
	}
	tokens, files, d := newTokens(t), newTree(t), newDist(t)
	small := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs", files.Dir)
	if out, err := small.CombinedOutput(); err != nil {
		t.Skipf("not run, because nothing can be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", files.Dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	files.Module("acme/vpc/aws", "1.0.0", asTarGz)
	token := tokens.New("ci")
	registry := startRegistry(t, site("registry.example.com", files, publishing(tokens)...))
	ci := registry.sender(t, token)
	before := files.files()
	name := zipOfDemo("1.0.0", thisPlatform)
	ci.put(t, demoPath+name, d[name]).is(t, 507, "disk is full: tell its operator")
	if after := files.files(); !slices.Equal(after, before) {
		t.Errorf("the tree has %v", after)
	}
	files.isClean()
	registry.Get(t, "https://registry.example.com/v1/modules/acme/vpc/aws/versions").is(t, 200, "1.0.0")
	if out, err := exec.Command("mount", "-o", "remount,size=256m", files.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, name := range d.names() {
		if status := ci.put(t, demoPath+name, d[name]).Status; status != 202 && status != 201 {
			t.Errorf("%s: %d", name, status)
		}
	}
	if !registry.sees(t, d) {
		t.Error("the release is not offered")
	}
}

// An abandoned release is dropped after the configured time, also by a server that was
// not running then.
func TestAbandonedReleases(t *testing.T) {
	t.Parallel()
	tokens, files := newTokens(t), newTree(t)
	token := tokens.New("ci")
	s := site("registry.example.com", files, publishing(tokens)...)
	registry := startRegistry(t, s)
	const abandoned = 1000
	ci := registry.sender(t, token)
	var group sync.WaitGroup
	work := make(chan int)
	for range 8 {
		group.Go(func() {
			for i := range work {
				version := fmt.Sprintf("1.%d.0", i)
				path := "providers/acme/demo/" + version + "/terraform-provider-demo_" + version + "_manifest.json"
				answer, err := ci.do(http.MethodPut, path, strings.NewReader(`{"version":1,"metadata":{"protocol_versions":["6.0"]}}`))
				if err != nil || answer.Status != 202 {
					t.Errorf("%v %d %s", err, answer.Status, answer.Body)
				}
			}
		})
	}
	for i := range abandoned {
		work <- i
	}
	close(work)
	group.Wait()
	if n := len(files.staged()); n != abandoned {
		t.Errorf("%d files are staged", n)
	}
	if files := registry.Get(t, "https://registry.example.com/v1/providers/acme/demo/versions"); files.Status != 404 {
		t.Errorf("%d %s", files.Status, files.Body)
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	for _, name := range files.files() {
		if err := os.Chtimes(filepath.Join(files.Dir, name), yesterday, yesterday); err != nil {
			t.Fatal(err)
		}
	}
	registry.Restart(t, s)
	eventually(t, "all are dropped", func() bool {
		_, err := os.Stat(files.Path("providers/.staging"))
		return os.IsNotExist(err)
	})
}
