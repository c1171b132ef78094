// Package wire knows every document that clients, this registry and other
// registries exchange: how it is written and how it is read.
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
// What is written here has the form that every client reads; the numbers in
// comments are those of docs/clients.md. What is read comes from other servers
// and may be malformed, hostile or huge: entries that some client would refuse
// are left out, and whatever no client could use is an error.
//
// # Written once
//
// A Document is encoded once and then sent to every client. It names files by
// their bare names. Registries that hand out longer URLs, or signed ones, insert
// them at the places the Document records.
package wire
