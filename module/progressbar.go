package module

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A progressBar shows on a terminal how far a scan is. Elsewhere it shows
// nothing: in a log it would be noise.
type progressBar struct {
	out io.Writer // nil: not a terminal
	now func() time.Time

	mutex sync.Mutex
	drawn time.Time
	width int
}

// redraw is how often the bar is drawn at most.
const redraw = 100 * time.Millisecond

func newProgressBar(f *os.File) *progressBar {
	bar := &progressBar{now: time.Now}
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		bar.out = f
	}
	return bar
}

// show draws the bar. It is called from several goroutines.
func (b *progressBar) show(p index.Progress) {
	if b.out == nil {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	now := b.now()
	if now.Sub(b.drawn) < redraw && p.Done < p.Total {
		return
	}
	b.drawn = now
	const cells = 30
	filled := 0
	if p.TotalBytes > 0 {
		filled = int(cells * p.DoneBytes / p.TotalBytes)
	}
	b.draw(fmt.Sprintf("[%s%s] %d of %d, %s/s, %s left",
		strings.Repeat("#", filled), strings.Repeat(".", cells-filled),
		p.Done, p.Total, humanize.Bytes(uint64(p.Rate(now))), p.Remaining(now)))
}

// clear removes the bar, so that what follows begins on an empty line.
func (b *progressBar) clear() {
	if b.out == nil {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.draw("")
	fmt.Fprint(b.out, "\r")
}

func (b *progressBar) draw(line string) {
	fmt.Fprintf(b.out, "\r%-*s", b.width, line)
	b.width = len(line)
}
