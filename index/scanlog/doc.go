// Package scanlog writes the findings of scans into the log: new offers, problems and changes.
// Each line says one thing, and once.
package scanlog
