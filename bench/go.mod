// Measures the registry. A module of its own, so that what it needs takes no part in the
// builds of the registry's users: it uses the binary as they do, and imports nothing of it.
module github.com/caddy-terraform/caddy-terraform-registry/bench

go 1.26.0

require (
	github.com/ProtonMail/go-crypto v1.5.2
	github.com/dustin/go-humanize v1.1.0
)

require (
	github.com/cloudflare/circl v1.6.5 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
