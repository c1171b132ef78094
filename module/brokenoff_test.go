package module

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// A download that breaks off reaches the client as an error through all of Caddy, and
// is logged and counted like any other.
func TestDownloadThatIsBrokenOff(t *testing.T) {
	content := make([]byte, 8<<20) // longer than all buffers between Caddy and the client
	rand.NewChaCha8([32]byte{1}).Read(content)
	root, dir := t.TempDir(), t.TempDir()
	packed := indextest.Zip("main.tf", "# a module", "data", string(content))
	indextest.OnDisk(t, root).Write("modules/acme/vpc/aws/1.0.0.zip", packed).Write("modules/acme/vpc/aws/2.0.0.zip", packed)
	options, _ := json.Marshal(Handler{Root: root, SigningKey: &SigningKey{Off: true}})
	config := fmt.Sprintf(`{
		"admin":{"disabled":true,"config":{"persist":false}},
		"storage":{"module":"file_system","root":%q},
		"logging":{"logs":{"access":{"writer":{"output":"file","filename":%q},"encoder":{"format":"json"},"include":["http.log.access"]}}},
		"apps":{"http":{"metrics":{},"servers":{"registry":{"listen":["127.0.0.1:0"],"protocols":["h1","h2c"],"automatic_https":{"disable":true},"logs":{},"routes":[
			{"handle":[{"handler":"terraform_registry",%s]}]}}}}}`,
		t.TempDir(), filepath.Join(dir, "access"), strings.TrimPrefix(string(options), "{"))
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	ctx := caddy.ActiveContext()
	http1, err := ctx.AppIfConfigured("http")
	if err != nil {
		t.Fatal(err)
	}
	addr := http1.(*caddyhttp.App).Servers["registry"].Listeners()[0].Addr().String()

	awaitLive(t)
	for version, two := range map[string]bool{"1.0.0": false, "2.0.0": true} {
		transport := &http.Transport{
			Protocols: new(http.Protocols), DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				if err == nil {
					err = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
				}
				return conn, err
			},
		}
		transport.Protocols.SetHTTP1(!two)
		transport.Protocols.SetUnencryptedHTTP2(two)
		response, err := (&http.Client{Transport: transport}).Get("http://" + addr + "/v1/modules/acme/vpc/aws/" + version + "/archive.zip")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, response.Body, 100); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("status %d, %v", response.StatusCode, err)
		}
		f, err := os.OpenFile(filepath.Join(root, "modules", "acme", "vpc", "aws", version+".zip"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(content); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if n, err := io.Copy(io.Discard, response.Body); err == nil {
			t.Errorf("%s: the client has got %d of %d bytes and no error", response.Proto, 100+n, response.ContentLength)
		}
		response.Body.Close()
		transport.CloseIdleConnections()
	}

	counted := (&configuration{t: t, ctx: ctx}).gathered()
	if n := counted["requests_total code=200 kind=module_archive"]; n != 2 {
		t.Errorf("%v downloads are counted: %v", n, counted)
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "access"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), `"terraform_registry":{"kind":"module_archive","address":"acme/vpc/aws","version":"`); n != 2 {
		t.Errorf("the log has %d of them: %s", n, log)
	}
}
