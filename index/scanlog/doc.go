// Package scanlog writes into the log what scans have found: what is offered now and was not
// before, what is withheld and why, and what has changed. Each line says one thing, and once.
package scanlog
