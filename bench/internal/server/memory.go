package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// admin asks the admin endpoint.
func (p *Process) admin(ctx context.Context, path string) ([]byte, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return p.dialAdmin(ctx)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, p.failure(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s of the admin endpoint: %s", path, response.Status)
	}
	return body, err
}

// dialAdmin connects to the admin endpoint, which a process that was started a
// moment ago does not have yet.
func (p *Process) dialAdmin(ctx context.Context) (net.Conn, error) {
	deadline := time.Now().Add(patience)
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", p.options.socket())
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return conn, err
		}
		select {
		case <-time.After(Poll):
		case <-p.exited:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// LiveHeap is the heap after garbage collection, in bytes. It collects until
// that changes nothing any more: pools let go of what they keep in the second
// collection, and a scan may be in its last moments.
func (p *Process) LiveHeap(ctx context.Context) (int64, error) {
	const atLeast, atMost, same = 3, 20, 0.005
	var before int64
	for collections := 1; ; collections++ {
		now, err := p.collected(ctx)
		if err != nil {
			return 0, err
		}
		changed := math.Abs(float64(now-before)) / float64(now)
		if collections >= atLeast && changed < same || collections == atMost {
			return now, nil
		}
		before = now
	}
}

// collected is the heap after one collection.
func (p *Process) collected(ctx context.Context) (int64, error) {
	// In this form the statistics are read before the profile is made.
	profile, err := p.admin(ctx, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	_, after, ok := bytes.Cut(profile, []byte("\n# HeapAlloc = "))
	if !ok {
		return 0, fmt.Errorf("the heap profile has no statistics")
	}
	value, _, _ := bytes.Cut(after, []byte("\n"))
	return strconv.ParseInt(string(value), 10, 64)
}

// Heap is the heap as it is, garbage included, in bytes.
func (p *Process) Heap(ctx context.Context) (int64, error) {
	body, err := p.admin(ctx, "/debug/vars")
	if err != nil {
		return 0, err
	}
	var vars struct {
		Memstats struct{ HeapAlloc int64 }
	}
	err = json.Unmarshal(body, &vars)
	return vars.Memstats.HeapAlloc, err
}

// Profile is a CPU profile of so many seconds.
func (p *Process) Profile(ctx context.Context, seconds int) ([]byte, error) {
	return p.admin(ctx, "/debug/pprof/profile?seconds="+strconv.Itoa(seconds))
}

// PeakRSS is the most memory that the process has had since ForgetPeak, in
// bytes, as the kernel has noted it.
func (p *Process) PeakRSS() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, err
	}
	_, after, ok := strings.Cut(string(status), "\nVmHWM:")
	if !ok {
		return 0, fmt.Errorf("the kernel does not tell the peak of memory")
	}
	var kilobytes int64
	_, err = fmt.Sscan(after, &kilobytes)
	return kilobytes << 10, err
}

// ForgetPeak makes the kernel begin anew with PeakRSS.
func (p *Process) ForgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0)
}
