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

// What is run needs none of a repository's hooks, filters and monitors, and these
// options turn off what git might still run of its configuration.
var optionsAlways = []string{
	"--no-pager",
	"-c", "core.fsmonitor=false",
	"-c", "core.hooksPath=" + os.DevNull,
	"-c", "protocol.ext.allow=never",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
	"-c", "fetch.recurseSubmodules=false",
	"-c", "fetch.negotiationAlgorithm=noop", // there is no history to begin from, and contents cannot be fetched with one
}

// elsewhere are variables of the environment that make git read another repository, as
// it sets them for hooks.
var elsewhere = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX",
	"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
	"GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
}

// readOnly are the variables with which a repository is only read, and says the same
// everywhere.
var readOnly = []string{
	"LC_ALL=C",
	"GIT_TERMINAL_PROMPT=0",    // there may be no user to answer
	"GIT_OPTIONAL_LOCKS=0",     // the user's repository is only read
	"GIT_NO_REPLACE_OBJECTS=1", // a tag's tree is that of its commit, not what refs/replace says
	"GIT_LITERAL_PATHSPECS=1",  // names in a tree are no patterns
	"GIT_NO_LAZY_FETCH=1",      // nor are objects added to it; older versions of git ignore this
}

// userEnvironment is that of this process. The configuration of the user and the system
// counts: credentials, proxies and safe.directory are there.
func userEnvironment() []string {
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(elsewhere, name)
	})
	return append(environment, readOnly...)
}

// passedOn are the variables of this process that a sealed git gets: without them neither
// git nor ssh would be found, or run on Windows.
var passedOn = []string{"PATH", "PATHEXT", "SYSTEMROOT", "COMSPEC", "WINDIR"}

// maxAllocation bounds what a server's git allocates at once, which repositories decide:
// of commits, trees and deltas the size is in the pack, and a few kilobytes may unpack to
// gigabytes. Contents of files are streamed. Real repositories need a tenth of it.
const maxAllocation = "256m"

// sealedEnvironment is that of a server's git. The only configuration besides the
// repository's own is the file .gitconfig in home. What should not be seen by other users
// of the machine is there, not among git's arguments.
func sealedEnvironment(home, sshCommand string) []string {
	var environment []string
	for _, name := range passedOn {
		if value, ok := os.LookupEnv(name); ok {
			environment = append(environment, name+"="+value)
		}
	}
	environment = append(environment, readOnly...)
	environment = append(environment,
		"HOME="+home, "XDG_CONFIG_HOME="+home, "USERPROFILE="+home,
		"TMPDIR="+home, "TMP="+home, "TEMP="+home,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL="+configurationFile(home),
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_PROTOCOL_FROM_USER=0",
		"GIT_ALLOC_LIMIT="+maxAllocation,
	)
	if sshCommand != "" {
		environment = append(environment, "GIT_SSH_COMMAND="+sshCommand, "GIT_SSH_VARIANT=ssh")
	}
	return environment
}

// configurationFile has the name that also versions of git before GIT_CONFIG_GLOBAL read.
func configurationFile(home string) string { return filepath.Join(home, ".gitconfig") }
