// Package tree touches the files of a tree, and is the only package that does.
//
// A Tree has three parts: providers, modules and keys. A Part lies on the local disk, in
// a Bucket or on another file system of Caddy's. Whoever reads or writes a part need not
// know where it lies:
//
//   - A name is relative to its part and has slashes. A symlink may lead to other places
//     below the root, and nowhere else.
//   - A file gets its name when it is complete and has reached the disk: TemporaryFile,
//     Part.WriteFile. Of several writers that create one file, the first wins.
//   - A folder of several files appears at once (Part.InstallFolder), or has a file last by
//     which it can be told that it is complete.
//   - A Stamp tells whether a file is still the one that was read.
//   - Only fs.ErrNotExist means that something does not exist. A Finding says whether an
//     error is about the file, or a fault that may be over a moment later.
//   - Errors have no path of the server in them, since they reach answers and reports.
package tree
