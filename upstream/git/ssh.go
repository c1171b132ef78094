package git

import (
	"strconv"
	"strings"
)

// An SSH determines how a server's git connects to one host. It does not use the
// configuration, keys and known hosts of the server's user.
type SSH struct {
	// Address and Port to which ssh connects, whatever the URL says.
	Address string
	Port    int

	// Key is the path of a private key. KnownHosts is the path of a file with the
	// public key of the host, under the name HostKeyAlias.
	Key, KnownHosts, HostKeyAlias string
}

// command returns the shell command that git runs instead of ssh.
func (s SSH) command() string {
	options := []string{
		"BatchMode=yes", // asks for no passwords
		"IdentitiesOnly=yes",
		"IdentityAgent=none",
		"StrictHostKeyChecking=yes",
		"GlobalKnownHostsFile=none",
		"UserKnownHostsFile=" + sshPath(s.KnownHosts),
		"HostKeyAlias=" + s.HostKeyAlias,
		"HostName=" + s.Address,
		"Port=" + strconv.Itoa(s.Port),
		"ClearAllForwardings=yes",
		"PermitLocalCommand=no",
		"ControlPath=none",
	}
	words := []string{"ssh", "-F", "none"}
	for _, option := range options {
		words = append(words, "-o", option)
	}
	words = append(words, "-o", "IdentityFile="+sshPath(s.Key))
	for i, word := range words {
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// sshPath quotes a path for an option of ssh that accepts several, separated by spaces,
// and escapes tokens such as %h.
func sshPath(path string) string {
	return `"` + strings.ReplaceAll(path, "%", "%%") + `"`
}
