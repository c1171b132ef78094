// Package lockfile reads the providers that a Terraform or OpenTofu configuration
// needs, and their versions. They come from its lock file ([Read]), which has one
// version and its hashes, from the configuration itself ([ReadConfiguration]), or from
// an argument ([ParseRequirement]). A [Configuration] also names the modules of
// registries that it calls. Their packages can be added to it.
package lockfile
