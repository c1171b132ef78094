// Package load is the client of the measurements: a process of its own that
// asks a server for one thing over and over, and costs as little as it can, so
// that what is measured is the server.
package load

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"time"
)

// A Protocol is what is spoken to the server.
type Protocol string

const (
	HTTP   Protocol = "http"      // HTTP/1.1 with keep-alive
	HTTPS  Protocol = "https"     // the same over TLS
	H2     Protocol = "h2"        // HTTP/2 over TLS, by Go's own client
	buffer          = 256 << 10   // for reading, of each connection
	grace           = time.Minute // for what is under way when time is up
)

// A Job is one measurement. It is a closed loop: each connection asks again
// when it has its answer, and never before.
type Job struct {
	Protocol    Protocol
	Address     string // host:port
	Host, Path  string // of the request
	CA          string // file with the certificate to trust
	Connections int    // with H2: streams of one connection

	// Authorization is the header of that name; without it, it is not sent.
	Authorization string

	Warmup, Duration time.Duration

	// Status is the answer's; zero is 200. With 204 there is no body.
	Status int

	// Length and SHA256 are the body's. The first answer of each connection is
	// compared byte by byte, as it were; later ones have to be as long. Without
	// SHA256 the first has to be as long, too, and that is all: signed links
	// change as time goes by, and their length does not.
	Length int64
	SHA256 string

	// Requests make it a fleet: Connections is how many clients make them, once
	// each and all at the same time, for which they have the Duration. There is
	// no Path then, and no Warmup.
	Requests []Request

	// Server is the process whose CPU time is of interest, its workers included.
	Server int
}

// status is the answer's.
func (j Job) status() int { return cmp.Or(j.Status, http.StatusOK) }

// verify compares the body of a first answer, by its hash.
func (j Job) verify(h hash.Hash) error {
	if got := hex.EncodeToString(h.Sum(nil)); j.SHA256 != "" && got != j.SHA256 {
		return fmt.Errorf("the answer's sha256 is %s, want %s", got, j.SHA256)
	}
	return nil
}

// A Result is what happened in the Duration after the Warmup.
type Result struct {
	Answers, Bytes int64
	Elapsed        time.Duration

	// Server and Own are the CPU time that the server and the client have
	// used; zero where the system does not tell.
	Server, Own time.Duration

	// Error is why there is no result.
	Error string
}

// Rate is answers a second.
func (r Result) Rate() float64 { return float64(r.Answers) / r.Elapsed.Seconds() }

// Throughput is bytes a second.
func (r Result) Throughput() float64 { return float64(r.Bytes) / r.Elapsed.Seconds() }

// ServerBusy is how much of one core the server has used.
func (r Result) ServerBusy() float64 { return r.Server.Seconds() / r.Elapsed.Seconds() }

// OwnBusy is how much of one core the client has used.
func (r Result) OwnBusy() float64 { return r.Own.Seconds() / r.Elapsed.Seconds() }

// Digest is the SHA256 of a body.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
