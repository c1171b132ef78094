package e2e_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Fifty machines that request the same new module at the same time cause one fetch of
// its repository, and get the same package.
func TestFiftyAtOnceForAModule(t *testing.T) {
	t.Parallel()
	const machines = 50
	outside := newOutside(t, newTree(t))
	code := outside.CodeHost(t)
	repository := code.Repository("terraform-aws-network")
	publishNetwork(code, repository, "1.0.0")
	mirror := outside.StartMirror(t, mirrorOf(codeHostRegistry, newTree(t), "modules", "versions_ttl 1ms", "timeout 1m"))
	client, err := mirror.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)

	everyone := newGate(t)
	code.Fails(codeHostRegistry, onPaths(everyone.before, "/versions"))
	var all, asking sync.WaitGroup
	asking.Add(machines)
	packages := make([]string, machines)
	for i := range machines {
		all.Go(func() {
			asked := sync.OnceFunc(asking.Done)
			defer asked()
			get := func(url string) (*http.Response, string) {
				trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { asked() }}
				request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, url, nil)
				if err != nil {
					t.Error(err)
					return nil, ""
				}
				answer, err := client.Do(request)
				if err != nil {
					t.Error(err)
					return nil, ""
				}
				defer answer.Body.Close()
				body, err := io.ReadAll(answer.Body)
				if err != nil || answer.StatusCode >= 300 {
					t.Errorf("%s: %d %s, %v", url, answer.StatusCode, body, err)
					return nil, ""
				}
				return answer, string(body)
			}
			if answer, _ := get(moduleOfCode("acme/network/aws", "versions")); answer == nil {
				return
			}
			link, _ := get(moduleOfCode("acme/network/aws", "1.0.0/download"))
			if link == nil {
				return
			}
			packed, _, _ := strings.Cut(strings.TrimPrefix(link.Header.Get("X-Terraform-Get"), "https://"), "//")
			_, packages[i] = get("https://" + packed)
		})
	}
	asking.Wait()
	everyone.open()
	all.Wait()

	if slices.Sort(packages); packages[0] == "" || packages[0] != packages[machines-1] {
		t.Error("not every machine got the same package")
	}
	for _, path := range []string{"/.well-known/terraform.json", "/v1/modules/acme/network/aws/1.0.0/download"} {
		if n := times(code.Asked(codeHostRegistry, path)); n != 1 {
			t.Errorf("%s was requested %d times", path, n)
		}
	}
	forFifty := times(code.Asked(codeHostGit, ""))
	publishNetwork(code, repository, "1.1.0")
	mirror.module(t, "acme/network/aws", "1.1.0")
	if forOne := times(code.Asked(codeHostGit, "")) - forFifty; forFifty != forOne || forOne == 0 {
		t.Errorf("git sent %d requests for fifty machines, and %d for one", forFifty, forOne)
	}
}

// duringFetch limits a fault to the requests in which git gets the files of a commit.
func duringFetch(fault Fault) Fault {
	return func(w http.ResponseWriter, r *http.Request, origin http.Handler) {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil || !bytes.Contains(body, []byte("command=fetch")) {
			origin.ServeHTTP(w, r)
			return
		}
		fault(w, r, origin)
	}
}

// A stand-in that is killed while it fetches a repository serves nothing of the
// repository. The next start removes the rest, and the module is then fetched as usual.
func TestKilledWhileFetchingAModule(t *testing.T) {
	t.Parallel()
	outside := newOutside(t, newTree(t))
	code := outside.CodeHost(t)
	publishNetwork(code, code.Repository("terraform-aws-network"), "1.0.0")
	files := newTree(t)
	s := mirrorOf(codeHostRegistry, files, "modules")
	mirror := outside.StartMirror(t, s)
	packaged := func() bool {
		return slices.ContainsFunc(files.files(), func(name string) bool { return strings.HasSuffix(name, ".tar.gz") })
	}

	cut, half := newGate(t), make(chan struct{})
	reached := sync.OnceFunc(func() { close(half) })
	code.Fails(codeHostGit, duringFetch(cutOff(func() { reached(); cut.wait() })))
	answered := make(chan error, 1)
	go func() {
		_, err := mirror.ask(moduleOfCode("acme/network/aws", "1.0.0/download"))
		answered <- err
	}()
	<-half
	if err := mirror.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-mirror.ended
	cut.open()
	if err := <-answered; err == nil {
		t.Error("a client got an answer for a module that was not complete")
	}
	if packaged() {
		t.Errorf("the tree has %v", files.files())
	}

	code.Fails(codeHostGit, hangUp)
	files.anHourPasses()
	mirror.start(t, []Site{s})
	eventually(t, "what was left is removed", func() bool { return len(unfetched(files)) == 0 })
	// Caddy's lock of the killed process remains for some seconds. A client may get the
	// link meanwhile, to a package that is not there.
	answer := mirror.Get(t, moduleOfCode("acme/network/aws", "1.0.0/download"))
	if link := answer.Header.Get("X-Terraform-Get"); link != "" {
		packed, _, _ := strings.Cut(strings.TrimPrefix(link, "https://"), "//")
		answer = mirror.Get(t, "https://"+packed)
	}
	if answer.Status != 502 {
		t.Errorf("without the code host: %d %s", answer.Status, answer.Body)
	}
	if left := mirror.temporary(t); packaged() || len(left) > 0 {
		t.Errorf("the tree has %v, and there are the temporary folders %v", files.files(), left)
	}

	code.Fails(codeHostGit, nil)
	mirror.Restart(t, s)
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, mirror, networkCall)
		ws.CLIConfig(t, standingIn(codeHostRegistry))
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `network = "network 1.0.0 with shared 1.0.0"`)
	})
	if files, _ := mirror.module(t, "acme/network/aws", "1.0.0"); len(files) != 3 {
		t.Errorf("the package has %v", slices.Sorted(maps.Keys(files)))
	}
}
