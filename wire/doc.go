// Package wire encodes and decodes the documents that clients, this registry and other
// registries exchange.
//
//   - provider registry: the list of versions (providerversions.go) and the
//     description of a package (download.go)
//   - provider network mirror: index.json and VERSION.json (mirror.go)
//   - module registry: the list of versions (modules.go)
//   - lists, searches and details of modules and providers (modulelist.go,
//     moduledetail.go, providerlist.go, providerdetail.go, page.go)
//   - service discovery (discovery.go)
//   - the files of a release: SHA256SUMS (checksums.go) and manifest (manifest.go)
//
// Documents are written in the form that every client reads; the checklist numbers in
// comments are explained in docs/clients.md. Documents that are read come from other
// servers and may be malformed, hostile or huge: entries that some client would refuse
// are left out, and a document that no client could use is an error.
//
// # Written once
//
// A Document is encoded once and then sent to every client. It contains bare file
// names. Registries that use longer or signed URLs insert them at the positions that
// the Document records.
package wire
