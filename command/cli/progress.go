package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A progressBar shows the progress of a command on a terminal. In a log it would be noise, so
// there it shows nothing.
type progressBar struct {
	out io.Writer // nil: not a terminal
	now func() time.Time

	mutex sync.Mutex
	drawn time.Time
	width int
}

// redraw is the least time between two drawings of a bar.
const redraw = 100 * time.Millisecond

// newProgressBar makes a bar on a file, if the file is a terminal.
func newProgressBar(f *os.File) *progressBar {
	bar := &progressBar{now: time.Now}
	if IsTerminal(f) {
		bar.out = f
	}
	return bar
}

// Scan scans a tree, and shows the progress on standard error.
func Scan(ctx context.Context, o index.Options) (*index.Snapshot, error) {
	bar := newProgressBar(os.Stderr)
	defer bar.Clear()
	o.Progress = bar.show
	return index.Scan(ctx, o)
}

// show draws the progress of a scan. It can be called concurrently.
func (b *progressBar) show(p index.Progress) {
	b.Line(p.Done >= p.Total, func(now time.Time) string {
		return Bar(p.DoneBytes, p.TotalBytes, fmt.Sprintf("%d of %d, %s/s, %s left",
			p.Done, p.Total, humanize.Bytes(uint64(p.Rate(now))), p.Remaining(now)))
	})
}

// Bar is a bar that is filled in proportion, with a text behind it. The bar is as long as the
// text allows.
func Bar(done, total int64, text string) string {
	width := min(30, Width-len("[] ")-len(text)-1)
	if width < 8 {
		return text
	}
	filled := 0
	if total > 0 {
		filled = int(int64(width) * done / total)
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", width-filled) + "] " + text
}

// Line replaces the line on the terminal, unless it was drawn a moment ago. The last line is
// always drawn.
func (b *progressBar) Line(last bool, text func(now time.Time) string) {
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

// Clear removes the bar, so that the next output begins on an empty line.
func (b *progressBar) Clear() {
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
