// Package blob implements a file system for Caddy whose files are the objects of an
// object store: S3 and stores with its protocol, Google Cloud Storage, and Azure Blob
// Storage.
//
// It is a separate Go module, so that the SDKs of these stores are only built into
// binaries that need them.
package blob

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"
	"go.uber.org/zap"
)

func init() { caddy.RegisterModule(new(FileSystem)) }

// FileSystem is the module `caddy.fs.blob`: the objects of a bucket as files, for
// `terraform_registry`, `file_server` and every other handler that reads from a file
// system.
//
//	{
//		filesystem releases blob {
//			url s3://acme-releases?region=eu-central-1
//			prefix registry
//			cache 10GB /var/cache/caddy/releases
//		}
//	}
//
// No request is sent when the configuration is loaded, so Caddy starts even if the store
// cannot be reached. Each request has to be answered within 30 seconds.
type FileSystem struct {
	// URL names the bucket:
	//
	//   - `s3://NAME?region=REGION` is S3. `endpoint=https://HOST` is another store with
	//     its protocol. Most of these stores need `use_path_style=true` as well. `profile`,
	//     `role`, `anonymous`, `ssetype`, `kmskeyid`, `accelerate`, `dualstack`, `fips` and
	//     others are described in https://pkg.go.dev/gocloud.dev/blob/s3blob#URLOpener.
	//   - `gs://NAME` is Google Cloud Storage, with the parameters of
	//     https://pkg.go.dev/gocloud.dev/blob/gcsblob#URLOpener.
	//   - `azblob://CONTAINER` is Azure Blob Storage, with the parameters of
	//     https://pkg.go.dev/gocloud.dev/blob/azureblob#URLOpener. `AZURE_STORAGE_ACCOUNT`
	//     names the account.
	//   - `file:///FOLDER` is a local folder and `mem://` is memory, for trials.
	//
	// Credentials are found as the SDK of the store finds them: from the environment
	// (`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, `GOOGLE_APPLICATION_CREDENTIALS`,
	// `AZURE_STORAGE_KEY` …), from its files, or from the machine's role. They are not
	// part of the URL. Placeholders such as `{env.BUCKET}` are replaced.
	URL string `json:"url,omitempty"`

	// Prefix is the beginning of the files' keys, before a slash. The rest of the
	// bucket cannot be reached. Empty: the whole bucket. Placeholders are replaced.
	Prefix string `json:"prefix,omitempty"`

	// Cache keeps objects on the local disk. Without it, each is read from the store
	// whenever it is requested.
	Cache *Cache `json:"cache,omitempty"`

	options options
	bucket  *Bucket
}

// Cache is a folder for objects that have been read from start to end, if they have at
// least 64 KiB. The store is asked each time whether an object has changed, and its answer
// includes the content of small objects. An object that was replaced is never served from
// the cache.
type Cache struct {
	// Size limits the cache, in bytes. The least recently used objects are removed first.
	// In a Caddyfile, it has a unit, such as 10GB or 500MiB.
	Size int64 `json:"size,omitempty"`

	// Directory is the folder, which several file systems and processes may share. Each
	// keeps to its own size, so they should have the same. Files in it that are not the
	// cache's stay, and do not count. Placeholders are replaced.
	Directory string `json:"directory,omitempty"`
}

// buckets has the buckets in use, by their options. They outlive the configurations that
// use them, and so does what depends on them, such as the registry's index.
var buckets = caddy.NewUsagePool()

// CaddyModule returns the Caddy module information.
func (*FileSystem) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.blob", New: func() caddy.Module { return new(FileSystem) }}
}

// Provision sets up the file system.
func (f *FileSystem) Provision(caddy.Context) error {
	o, err := f.expand()
	if err != nil {
		return err
	}
	bucket, _, err := buckets.LoadOrNew(o, func() (caddy.Destructor, error) { return open(o, logger) })
	if err != nil {
		return err
	}
	f.options, f.bucket = o, bucket.(*Bucket)
	return nil
}

// logger returns the logger of the current configuration. A bucket outlives the
// configuration for which it was opened, and the log outputs of that configuration.
func logger() *zap.Logger { return caddy.Log().Named("caddy.fs.blob") }

// expand returns the options with placeholders replaced.
func (f *FileSystem) expand() (o options, err error) {
	repl := caddy.NewReplacer()
	if f.URL == "" {
		return o, errors.New("url: name the bucket, for instance s3://NAME?region=REGION")
	}
	if o.url, err = repl.ReplaceOrErr(f.URL, true, true); err != nil {
		return o, fmt.Errorf("url: %w", err)
	}
	if o.prefix, err = repl.ReplaceOrErr(f.Prefix, true, true); err != nil {
		return o, fmt.Errorf("prefix: %w", err)
	}
	if f.Cache == nil {
		return o, nil
	}
	if f.Cache.Size <= 0 || f.Cache.Directory == "" {
		return o, errors.New("cache: both a size and a directory are needed")
	}
	o.cacheSize = f.Cache.Size
	if o.cacheDirectory, err = repl.ReplaceOrErr(f.Cache.Directory, true, true); err != nil {
		return o, fmt.Errorf("cache: %w", err)
	}
	return o, nil
}

// Cleanup releases the bucket.
func (f *FileSystem) Cleanup() error {
	if f.bucket == nil {
		return nil
	}
	_, err := buckets.Delete(f.options)
	return err
}

// Open implements fs.FS, the only method that Caddy lets handlers call. The root
// directory that it opens leads to the Bucket and its other methods.
func (f *FileSystem) Open(name string) (fs.File, error) { return f.bucket.Open(name) }

// UnmarshalCaddyfile sets up the file system from Caddyfile tokens:
//
//	blob {
//		url    <url>
//		prefix <prefix>
//		cache  <size> <directory>
//	}
func (f *FileSystem) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		switch option := d.Val(); option {
		case "url":
			if !d.AllArgs(&f.URL) {
				return d.ArgErr()
			}
		case "prefix":
			if !d.AllArgs(&f.Prefix) {
				return d.ArgErr()
			}
		case "cache":
			var size string
			f.Cache = new(Cache)
			if !d.AllArgs(&size, &f.Cache.Directory) {
				return d.ArgErr()
			}
			n, err := humanize.ParseBytes(size)
			if err != nil || n == 0 || int64(n) < 0 {
				return d.Errf("cache: %q is no size, such as 10GB", size)
			}
			f.Cache.Size = int64(n)
		default:
			return d.Errf("unknown option %q: url, prefix and cache are known", option)
		}
	}
	return nil
}

// Interface guards
var (
	_ fs.FS                 = (*FileSystem)(nil)
	_ caddy.Provisioner     = (*FileSystem)(nil)
	_ caddy.CleanerUpper    = (*FileSystem)(nil)
	_ caddyfile.Unmarshaler = (*FileSystem)(nil)
	_ fs.StatFS             = (*Bucket)(nil)
	_ fs.ReadDirFS          = (*Bucket)(nil)
)
