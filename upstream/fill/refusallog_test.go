package fill_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// However many packages and releases are asked for that do not come in, the log has
// one line for each way in which the origin fails, and later how many there were.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	s, names := many(t, 20)
	broken := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".zip") {
			w.Write([]byte("other bytes"))
			return
		}
		s.Handler.ServeHTTP(w, r)
	}
	for _, name := range names {
		s.Fault(files+name, broken)
	}
	mirrored(t, s, fill.Policy{}, func(t *testing.T, m *mirroring) {
		for i, name := range names[1:] {
			if _, err := m.Fill(background(), demo, name); err == nil {
				t.Fatal("it came")
			}
			m.Fill(background(), demo, fmt.Sprintf("terraform-provider-demo_9.0.%d_linux_amd64.zip", i)) // there is none
		}
		if n := m.log.count("level=WARN"); n != 1 || m.log.count("a package could not be mirrored") != 1 {
			t.Errorf("there are %d warnings", n)
		}
		time.Sleep(10 * time.Minute)
		m.Fill(background(), demo, names[0])
		if n := m.log.count("level=WARN"); n != 2 || m.log.count("more_like_it=18") != 1 {
			t.Errorf("there are %d warnings: %s", n, m.log.text.String())
		}
	})
}
