package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"os"
	"strconv"
	"strings"
)

// An objectReader is a git process that prints objects of a repository on request. The
// files that a module leads to are found one by one, and a git process for each of them
// would take longer than everything else.
type objectReader struct {
	ctx     context.Context
	ask     *os.File // a pipe to git
	answers *bufio.Reader
	stop    chan struct{}
	ended   chan struct{} // closed when git has ended, with err
	err     error

	folders map[string]*treeObject // by the requested name
	size    int                    // of folders, in bytes
}

// A treeObject is a folder, without the contents of the folders below.
type treeObject struct {
	id      string
	entries map[string]File
}

// maxTree limits the size of a folder, and of all remembered folders, in bytes. Real
// folders have some kilobytes.
const maxTree = 16 << 20

// objects starts the git process that prints objects, unless it is running. The process
// ends with the context, or when the repository is closed.
func (r *Repository) objects(ctx context.Context) (*objectReader, error) {
	if r.reader != nil && r.reader.ctx == ctx {
		return r.reader, nil
	}
	r.Close() // another context has started it, and may have ended it
	in, ask, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &objectReader{ctx: ctx, ask: ask, stop: make(chan struct{}), ended: make(chan struct{}), folders: make(map[string]*treeObject)}
	ready := make(chan *bufio.Reader, 1)
	go func() {
		defer close(o.ended)
		defer in.Close()
		o.err = r.read(ctx, in, func(output *bufio.Reader) error {
			ready <- output
			<-o.stop
			return nil
		}, "cat-file", "--batch")
	}()
	select {
	case o.answers = <-ready:
		r.reader = o
		return o, nil
	case <-o.ended:
		ask.Close()
		return nil, o.err
	}
}

// Close ends the git process that Entry has started.
func (r *Repository) Close() error {
	o := r.reader
	if o == nil {
		return nil
	}
	r.reader = nil
	o.ask.Close()
	close(o.stop)
	<-o.ended
	return o.err
}

// folder returns the tree for a name; nil if there is none.
func (r *Repository) folder(ctx context.Context, name string) (*treeObject, error) {
	o, err := r.objects(ctx)
	if err != nil {
		return nil, err
	}
	if t, known := o.folders[name]; known {
		return t, nil
	}
	t, size, err := o.readTree(r, name)
	if err != nil {
		if ended := r.Close(); ended != nil { // this error says why there is no output
			err = ended
		}
		return nil, err
	}
	if o.size += size; o.size > maxTree {
		clear(o.folders)
		o.size = size
	}
	o.folders[name] = t
	return t, nil
}

// readTree requests a tree. git prints OBJECT tree SIZE, and its content.
func (o *objectReader) readTree(r *Repository, name string) (*treeObject, int, error) {
	if _, err := io.WriteString(o.ask, name+"\n"); err != nil {
		return nil, 0, err
	}
	line, err := o.answers.ReadString('\n')
	if err != nil {
		return nil, 0, noEOF(err)
	}
	fields := strings.Fields(line)
	if len(fields) == 2 && fields[1] == "missing" {
		return nil, 0, nil
	}
	if len(fields) != 3 || fields[1] != "tree" {
		return nil, 0, r.damaged("one of its folders is damaged: check it with git fsck")
	}
	size, err := strconv.Atoi(fields[2])
	if err != nil || size < 0 || size > maxTree {
		return nil, 0, r.damaged("it has a folder with more than %d bytes of names", maxTree)
	}
	content := make([]byte, size+1) // and a line break
	if _, err := io.ReadFull(o.answers, content); err != nil {
		return nil, 0, noEOF(err)
	}
	t := &treeObject{id: fields[0], entries: make(map[string]File)}
	for rest := content[:size]; len(rest) > 0; {
		// MODE, a space, the name, a zero byte, and the object
		mode, after, hasMode := bytes.Cut(rest, []byte(" "))
		file, after, hasName := bytes.Cut(after, []byte{0})
		if length := len(t.id) / 2; hasMode && hasName && len(after) >= length {
			f := File{Mode: Mode(mode), Object: hex.EncodeToString(after[:length]), Name: string(file)}
			if f.Mode == "40000" {
				f.Mode = Folder
			}
			t.entries[f.Name], rest = f, after[length:]
			continue
		}
		return nil, 0, r.damaged("one of its folders is damaged: check it with git fsck")
	}
	return t, size, nil
}
