package command

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

// A progressBar shows on a terminal how far something is. Elsewhere it shows
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
	b.line(p.Done >= p.Total, func(now time.Time) string {
		return fmt.Sprintf("%s %d of %d, %s/s, %s left", cells(p.DoneBytes, p.TotalBytes),
			p.Done, p.Total, humanize.Bytes(uint64(p.Rate(now))), p.Remaining(now))
	})
}

// cells are a bar that is filled as far as something is done.
func cells(done, total int64) string {
	const width = 30
	filled := 0
	if total > 0 {
		filled = int(width * done / total)
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", width-filled) + "]"
}

// line draws a line in place of the one before, but not more often than can be
// seen. The last one is drawn in any case.
func (b *progressBar) line(last bool, text func(now time.Time) string) {
	if b.out == nil {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	now := b.now()
	if now.Sub(b.drawn) < redraw && !last {
		return
	}
	b.drawn = now
	b.draw(text(now))
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
