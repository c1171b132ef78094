package index

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// What lies in a module's folder is not all of the module. The names here are
// left out of its package whatever a .terraformignore says: what tools keep for
// themselves, and what gives away more than a module does. Files with other
// names that begin with a dot stay, since modules use them.

// clutter are names of version control, of caches, and of what editors and
// operating systems leave behind.
var clutter = []string{
	".git", ".svn", ".hg", ".bzr", ".jj", "CVS",
	".terraform", ".terragrunt-cache",
	"crash.log", ".DS_Store",
}

// credentials are names of files and folders in which tools keep the secrets of
// their user.
var credentials = []string{
	".netrc", "_netrc", ".envrc", ".git-credentials",
	".terraformrc", "terraform.rc", ".tofurc", "tofu.rc", "credentials.tfrc.json", ".vault-token",
	".ssh", ".gnupg", ".aws", ".azure", ".kube", "application_default_credentials.json",
}

// isLeftOut reports whether no package of a module folder has a file or folder of
// that name.
func isLeftOut(name string) bool { return isClutter(name) || secretByName(name) != "" }

func isClutter(name string) bool {
	return slices.Contains(clutter, name) || temporary(name) ||
		strings.HasPrefix(name, "..") || // Kubernetes' own names in a volume: the files in it are links to there
		strings.HasPrefix(name, "crash.") && strings.HasSuffix(name, ".log") ||
		strings.HasPrefix(name, ".#") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") && len(name) > 1 ||
		isSwapFile(name) || isUnfinishedCopy(name)
}

// secretByName returns what kind of secret a file or folder is by its name, or
// nothing.
func secretByName(name string) string {
	switch {
	case isState(name):
		return "state"
	case slices.Contains(credentials, name), isEnvironment(name):
		return "credentials"
	}
	return ""
}

// isState reports whether name is Terraform's state, a backup or a lock of it.
func isState(name string) bool {
	return strings.HasSuffix(name, ".tfstate") || strings.Contains(name, ".tfstate.") && !isConfiguration(name)
}

// isEnvironment reports whether name holds environment variables, other than an
// example of them.
func isEnvironment(name string) bool {
	return name == ".env" || strings.HasPrefix(name, ".env.") && !isExample(name)
}

func isExample(name string) bool {
	return slices.Contains([]string{".example", ".sample", ".template"}, path.Ext(name))
}

// isSwapFile reports whether name is what Vim keeps beside a file that is being
// edited: .NAME.swp, or a letter before that.
func isSwapFile(name string) bool {
	ext := path.Ext(name)
	return strings.HasPrefix(name, ".") && len(name) > len(ext) && len(ext) == len(".swp") &&
		strings.HasPrefix(ext, ".sw") && 'a' <= ext[3] && ext[3] <= 'p'
}

// isUnfinishedCopy reports whether name is rsync's of a file that has not been
// copied to its end: .NAME.XXXXXX with six random letters and digits. Six small
// letters alone may be an extension: then NAME must have one too.
func isUnfinishedCopy(name string) bool {
	ext := path.Ext(name)
	if !strings.HasPrefix(name, ".") || len(ext) != len(".XXXXXX") || len(name) <= len(ext)+1 || isExample(name) {
		return false
	}
	plain := true
	for _, c := range ext[1:] {
		switch {
		case 'a' <= c && c <= 'z':
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			plain = false
		default:
			return false
		}
	}
	return !plain || strings.Contains(name[1:len(name)-len(ext)], ".")
}

// maxListed is how many names a note lists.
const maxListed = 3

// A nameList is names for a note: the first ones, and how many there are.
type nameList struct {
	first []string
	total int
}

// maxListedName bounds a name in a note: one in a tar may have any length.
const maxListedName = 200

// add adds a name, with a kind behind it if there is one.
func (l *nameList) add(name string, kind ...string) {
	if l.total++; len(l.first) > maxListed {
		return
	}
	if len(name) > maxListedName {
		name = strings.ToValidUTF8(name[:maxListedName], "") + "…"
	}
	name = strings.Clone(name)
	for _, k := range kind {
		name += " (" + k + ")"
	}
	l.first = append(l.first, name)
}

// String is like "a, b, c and 2 others". One more than that many is named too.
func (l *nameList) String() string {
	switch {
	case l.total == 0:
		return ""
	case l.total == 1:
		return l.first[0]
	case l.total == len(l.first):
		last := len(l.first) - 1
		return strings.Join(l.first[:last], ", ") + " and " + l.first[last]
	}
	shown := min(maxListed, len(l.first))
	return fmt.Sprintf("%s and %d others", strings.Join(l.first[:shown], ", "), l.total-shown)
}
