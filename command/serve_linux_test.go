package command

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// Caddy listens so that processes can share a port, and each gets some of the
// connections: a server that was forgotten would answer half of the requests.
func TestCommandSharesNoPort(t *testing.T) {
	listen := func(t *testing.T, address string) (listener net.Listener, port string) {
		t.Helper()
		a, err := caddy.ParseNetworkAddress(address)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := a.Listen(t.Context(), 0, net.ListenConfig{})
		if err != nil {
			t.Fatal(err)
		}
		listener = opened.(net.Listener)
		_, port, err = net.SplitHostPort(listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return listener, port
	}
	for rule, address := range map[string]string{
		"of the same address": "127.0.0.1:0",
		"of all addresses":    "0.0.0.0:0",
	} {
		t.Run(rule, func(t *testing.T) {
			other, port := listen(t, address)
			s, err := planSite("", "127.0.0.1:"+port, false)
			if err != nil {
				t.Fatal(err)
			}
			err = s.checkPort()
			if err == nil || !strings.Contains(err.Error(), "something serves on 127.0.0.1:"+port+" already") {
				t.Errorf("it says %v", err)
			}
			other.Close()
			if err := s.checkPort(); err != nil {
				t.Errorf("after that has ended, it says %v", err)
			}
		})
	}
}

// A site with a public certificate needs the ports of root, so another port is no advice.
func TestCommandExplainsPortsOfRoot(t *testing.T) {
	for _, test := range []struct {
		domain        string
		internalCerts bool
		says          string
	}{
		{"", false, "your user may not serve on :80: choose a port from 1024 on"},
		{"registry.example.com", true, "your user may not serve on :443: choose a port from 1024 on"},
		{"registry.example.com", false, "your user may not serve on :443, and a public certificate needs the ports 443 and 80"},
	} {
		s, err := planSite(test.domain, "", test.internalCerts)
		if err != nil {
			t.Fatal(err)
		}
		err = s.explainPort(s.listen, &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EACCES)})
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("it says %v", err)
		}
	}
}
