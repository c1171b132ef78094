// Package tree reads and writes the files of a tree. No other package does.
//
// A Tree has three parts: providers, modules and keys. A Part lies in a Storage: on the local
// disk (tree/disk), in an object store (tree/bucket) or on another file system of Caddy's
// (tree/iofs). tree/source opens one of them. Code that reads or writes a part does not know
// where it lies, and treetest.Conform checks that it need not:
//
//   - A name is relative to its part and has slashes. A symlink may lead to other places
//     below the root, and nowhere else.
//   - A file gets its name when it is complete and has reached the disk: TemporaryFile,
//     Part.WriteFile. If several writers create the same file, the first one wins.
//   - A folder of several files appears at once (Part.InstallFolder), or its last file shows
//     that it is complete.
//   - A Stamp tells whether a file is still the file that was read.
//   - Only fs.ErrNotExist means that a file does not exist. A Finding says whether an error
//     is about the file, or a fault that may be over a moment later.
//   - Errors contain no paths of the server, since they reach answers and reports.
package tree
