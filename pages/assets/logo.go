package assets

import (
	"fmt"
	"path"
	"strings"
)

// MaxLogo is the size of a logo in bytes.
const MaxLogo = 256 << 10

// A Logo is the picture beside the name of a registry.
type Logo struct{ File }

// NewLogo makes a logo of the content of an image. The end of the file's name says what kind
// of image it is.
func NewLogo(file string, content []byte) (*Logo, error) {
	extension := strings.ToLower(path.Ext(file))
	typ := ImageType(file)
	switch {
	case typ == "":
		return nil, fmt.Errorf("a file whose name ends in %q is no image that browsers show: use .svg, .png, .webp, .jpg or .gif", extension)
	case len(content) > MaxLogo:
		return nil, fmt.Errorf("the image has more than %d KiB", MaxLogo>>10)
	case len(content) == 0:
		return nil, fmt.Errorf("the file is empty")
	}
	l := &Logo{newFile("logo"+extension, typ, content)}
	if extension == ".svg" {
		l.Zipped = Zip(content)
	}
	return l, nil
}

// IsAt reports whether an escaped path below the path of the pages is the path of the logo.
func (l *Logo) IsAt(escaped string) bool { return l != nil && escaped == Folder+l.Name }

// imageTypes are the media types of images by the ends of their names. All other files
// that READMEs link to are shown as plain text.
var imageTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".avif": "image/avif", ".svg": "image/svg+xml", ".ico": "image/x-icon",
}

// ImageType returns the media type of a file that browsers show as an image; empty for others.
func ImageType(file string) string { return imageTypes[strings.ToLower(path.Ext(file))] }
