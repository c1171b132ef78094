// Package lockfile reads which providers a Terraform or OpenTofu configuration
// needs, in which versions: from its lock file ([Read]), which names one version
// and its hashes, from the configuration itself ([ReadConfiguration]), or from an
// argument ([ParseRequirement]). A [Configuration] also names the modules of registries
// that it calls, and can be read on from their packages.
package lockfile
