package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Available reports whether there is a git binary to run.
func Available() bool {
	_, err := exec.LookPath("git")
	return err == nil
}

// The commands need none of a repository's hooks, filters and monitors. These options
// turn off the commands that git might still run because of its configuration.
var optionsAlways = []string{
	"--no-pager",
	"-c", "core.fsmonitor=false",
	"-c", "core.hooksPath=" + os.DevNull,
	"-c", "protocol.ext.allow=never",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
	"-c", "fetch.recurseSubmodules=false",
	"-c", "fetch.negotiationAlgorithm=noop", // there is no history to start with, and contents cannot be fetched with a history
}

// elsewhere are variables of the environment that make git read another repository. Git
// sets them for hooks.
var elsewhere = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX",
	"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
	"GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
}

// readOnly are variables with which a repository is only read, and with which git
// prints the same everywhere.
var readOnly = []string{
	"LC_ALL=C",
	"GIT_TERMINAL_PROMPT=0",    // there may be no user to answer
	"GIT_OPTIONAL_LOCKS=0",     // the user's repository is only read
	"GIT_NO_REPLACE_OBJECTS=1", // a tag's tree is its commit's, not a replacement in refs/replace
	"GIT_LITERAL_PATHSPECS=1",  // names in a tree are not patterns
	"GIT_NO_LAZY_FETCH=1",      // no objects are added to it; older versions of git ignore this
}

// userEnvironment returns the environment of this process. It includes the
// configuration of the user and the system, with credentials, proxies and
// safe.directory.
func userEnvironment() []string {
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(elsewhere, name)
	})
	return append(environment, readOnly...)
}

// passedOn are the variables of this process that a sealed git gets. Without them git
// would not be found, or not run on Windows.
var passedOn = []string{"PATH", "PATHEXT", "SYSTEMROOT", "COMSPEC", "WINDIR"}

// maxAllocation limits the memory that a server's git allocates at once. Repositories
// determine it: the pack has the sizes of commits, trees and deltas, and a few
// kilobytes may unpack to gigabytes. Contents of files are streamed. Real repositories
// need a tenth of it.
const maxAllocation = "256m"

// sealedEnvironment returns the environment of a server's git. The only configuration
// besides the repository's own is the file .gitconfig in home. Other users of the
// machine can see git's arguments, so secrets are in that file.
func sealedEnvironment(home string) []string {
	var environment []string
	for _, name := range passedOn {
		if value, ok := os.LookupEnv(name); ok {
			environment = append(environment, name+"="+value)
		}
	}
	environment = append(environment, readOnly...)
	return append(environment,
		"HOME="+home, "XDG_CONFIG_HOME="+home, "USERPROFILE="+home,
		"TMPDIR="+home, "TMP="+home, "TEMP="+home,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL="+configurationFile(home),
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_PROTOCOL_FROM_USER=0",
		"GIT_ALLOC_LIMIT="+maxAllocation,
	)
}

// configurationFile returns a name that is also read by versions of git before
// GIT_CONFIG_GLOBAL.
func configurationFile(home string) string { return filepath.Join(home, ".gitconfig") }
