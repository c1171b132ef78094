package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
)

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
