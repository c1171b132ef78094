// Package git reads repositories with the git binary. The binary is used rather than a
// library since it has its user's credentials, proxies and SSH configuration, fetches
// single folders, and is the client with which servers of repositories are tested.
//
// A repository may be anyone's, so nothing in it is run. Files are read from git's
// objects and never checked out, so that hooks, filters and attributes have no effect,
// and a commit has the same bytes on every machine.
//
// A user's repository ([Open], [Connect]) is read with the configuration of that user.
// A server fetches ([Fetch]) in a sealed environment: it has neither the variables and
// configuration of the server's user nor any connection to the network but the given
// one.
package git
