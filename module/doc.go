// Package module is the registry as Caddy modules: the app that owns the indexes,
// the HTTP handler that answers from them, authenticators and the admin API.
//
// It only connects. What a tree contains is the index package's to say, what
// an answer looks like the handlers package's, and what a signature is worth
// the signing package's; none of them knows Caddy.
//
// # Life of an index
//
// Reading a tree may take minutes, so neither a reload nor `caddy validate`
// may cause it, and two sites of one tree must not do it twice:
//
//   - a handler is provisioned: it checks its options and tells the app what
//     tree it wants, by a [Source];
//   - the app starts: it takes the index of every such tree from a pool that
//     outlives configurations, or makes it, and has it scan;
//   - the app is cleaned up: it gives back what it took. The last one out
//     closes the index.
//
// While Caddy exchanges one configuration for another, both are alive. The new
// app takes its references before the old one gives its back, so an index that
// both want is never closed in between.
package module
