package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"path"
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
