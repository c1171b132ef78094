// Package report has the form in which a scan tells what it has found: which versions are
// offered, which files are withheld or ignored, and why. It does not know how any of that is
// found out.
package report
