// Package verify checks what clients have downloaded against the transparency logs of the
// registries that it came from.
//
// Init leaves a lock file and the packages of providers and modules (Project). A Finder
// finds the Logs of their registries, as a client with the same settings would. For each
// version a Log has entries with the hashes of its packages; each entry comes with a proof
// that it is in the log, and each proof leads to a signed checkpoint. All checkpoints of a run
// must be of one log, together with the one that the repository has committed (Pin). So a
// registry cannot show one log to this reader and another one to the next.
//
// A registry, and whatever is between it and here, may answer anything. Every answer is
// bounded. It counts only if it is proved, and what is not proved only explains.
package verify
