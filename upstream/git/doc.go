// Package git reads repositories with the git binary. The binary is used rather than a
// library since it has its user's credentials, proxies and SSH configuration, fetches
// single folders, and is what the servers of repositories are tested with.
//
// A repository may be anyone's. Nothing in it is run: files are read from git's objects
// and never checked out, so that hooks, filters and attributes have no effect, and a
// commit gives the same bytes on every machine.
//
// A user's repository ([Open], [Connect]) is read with the configuration of that user. A
// server fetches ([Fetch]) in an environment that is sealed: it has neither the variables
// and configuration of the server's user nor a way to the network but the one given.
package git
