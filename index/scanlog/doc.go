// Package scanlog counts scans, and writes their findings into the log: new offers, problems and
// changes. Each line says one thing, and once.
package scanlog
