package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assetFolder is the folder of the assets, below the path of the pages.
const assetFolder = "/_registry/"

// An asset is a static file of the pages. Its name contains a hash of its content, so
// that browsers keep it and never ask again.
type asset struct {
	name, contentType, tag string
	content, zipped        []byte
}

// assets are all static files, by the names in their URLs.
type assets struct {
	byName map[string]asset
	hashed map[string]string // style.css → style-0123456789.css
}

var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// loadAssets reads the embedded files.
func loadAssets() assets {
	a := assets{make(map[string]asset), make(map[string]string)}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // they are part of the binary
	}
	for _, e := range entries {
		content, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		extension := path.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), extension) + "-" + hex.EncodeToString(sum[:5]) + extension
		a.byName[name] = asset{name, assetTypes[extension], contentTag(content), content, zip(content)}
		a.hashed[e.Name()] = name
	}
	return a
}

// MaxLogo is the size of a logo in bytes.
const MaxLogo = 256 << 10

// A Logo is the picture beside the name of a registry. Like the assets, it has a name with a
// hash of its content.
type Logo struct{ asset }

// NewLogo makes a logo of the content of an image. The end of the file's name says what kind
// of image it is.
func NewLogo(file string, content []byte) (*Logo, error) {
	extension := strings.ToLower(filepath.Ext(file))
	typ := imageTypes[extension]
	switch {
	case typ == "":
		return nil, fmt.Errorf("a file whose name ends in %q is no image that browsers show: use .svg, .png, .webp, .jpg or .gif", extension)
	case len(content) > MaxLogo:
		return nil, fmt.Errorf("the image has more than %d KiB", MaxLogo>>10)
	case len(content) == 0:
		return nil, fmt.Errorf("the file is empty")
	}
	sum := sha256.Sum256(content)
	a := asset{name: "logo-" + hex.EncodeToString(sum[:5]) + extension, contentType: typ, tag: contentTag(content), content: content}
	if extension == ".svg" {
		a.zipped = zip(content)
	}
	return &Logo{a}, nil
}

// answer returns the answer with the image. It does nothing, whatever is in it.
func (l *Logo) answer() *answer {
	a := assetAnswer(l.asset)
	a.policy = filePolicy
	return a
}

// isAt reports whether a request asks for the logo: by its escaped path below the path of
// the pages.
func (l *Logo) isAt(escaped, method string) bool {
	return l != nil && escaped == assetFolder+l.name && (method == http.MethodGet || method == http.MethodHead)
}
