// Package assets has the files that the pages load: the stylesheet, the script, the icon, and
// the logo of a registry.
package assets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"path"
	"strings"
	"sync"
)

//go:embed *.css *.js *.svg
var files embed.FS

// Folder is the folder of the files, below the path of the pages.
const Folder = "/_registry/"

// A File is loaded by the pages. Its name contains a hash of its content, so that browsers keep
// it and never ask again.
type File struct {
	Name, Type, Tag string
	Content, Zipped []byte // Zipped is nil if the content is not compressed
}

// embedded are the files of the binary, by the names in their URLs.
var embedded = sync.OnceValue(func() (e struct {
	byName map[string]File
	hashed map[string]string // style.css → style-0123456789.css
}) {
	e.byName, e.hashed = make(map[string]File), make(map[string]string)
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // they are part of the binary
	}
	for _, entry := range entries {
		content, err := files.ReadFile(entry.Name())
		if err != nil {
			panic(err)
		}
		f := newFile(entry.Name(), types[path.Ext(entry.Name())], content)
		f.Zipped = Zip(content)
		e.byName[f.Name] = f
		e.hashed[entry.Name()] = f.Name
	}
	return e
})

var types = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func newFile(name, contentType string, content []byte) File {
	sum := sha256.Sum256(content)
	extension := path.Ext(name)
	hashed := strings.TrimSuffix(name, extension) + "-" + hex.EncodeToString(sum[:5]) + extension
	return File{Name: hashed, Type: contentType, Tag: Tag(content), Content: content}
}

// Named returns the file with a name that has its hash.
func Named(name string) (f File, ok bool) {
	f, ok = embedded().byName[name]
	return f, ok
}

// Path returns the path of a file such as style.css, below the path of the pages.
func Path(file string) string { return Folder + embedded().hashed[file] }

// Tag makes a validator from content. The content of a page depends on the visitor, and so does
// its validator, so that it discloses no more than the page.
func Tag(content []byte) string {
	sum := sha256.Sum256(content)
	return base64.RawURLEncoding.EncodeToString(sum[:15])
}

// minZipped is the size up to which content fits into one packet anyway.
const minZipped = 1400

// Zip compresses what is kept, once: the pages of large modules are long and repetitive, and
// sending them as they are costs several times as much. Other answers are left to Caddy's
// encode, which leaves alone what is compressed already.
func Zip(content []byte) []byte {
	if len(content) < minZipped {
		return nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(content) // to memory
	_ = z.Close()
	return b.Bytes()
}
