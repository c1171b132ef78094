// Package publish is the command that publishes providers and modules to a registry.
package publish
