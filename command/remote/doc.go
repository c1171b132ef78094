// Package remote speaks to a registry elsewhere on behalf of a command: it discovers the
// services of the registry, finds the user's token and sends requests.
package remote
