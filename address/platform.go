package address

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Platform is an operating system and an architecture in Go's names.
type Platform struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// String returns OS_ARCH, as clients write it.
func (p Platform) String() string { return p.OS + "_" + p.Arch }

const maxPlatformWord = 32

// ParsePlatform checks OS and ARCH. They consist of lower-case letters and digits,
// since they are part of file names and URLs.
func ParsePlatform(os, arch string) (Platform, error) {
	if !isWord(os, maxPlatformWord) || !isWord(arch, maxPlatformWord) {
		return Platform{}, fmt.Errorf("%q is not a platform: use Go's names, like linux_amd64", os+"_"+arch)
	}
	return Platform{OS: os, Arch: arch}, nil
}

// ParsePlatformName is ParsePlatform for a name like that of Platform.String.
func ParsePlatformName(name string) (Platform, error) {
	os, arch, _ := strings.Cut(name, "_")
	return ParsePlatform(os, arch)
}

// Known reports whether Go supports the platform, has supported it, or reserves its
// name. Clients are written in Go and ask for their own platform, so that packages for
// any other would never be installed.
func (p Platform) Known() bool {
	return slices.Contains(knownOS, p.OS) && slices.Contains(knownArch, p.Arch)
}

// The lists of Go's internal/syslist.
var (
	knownOS = []string{"aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "js", "linux",
		"nacl", "netbsd", "openbsd", "plan9", "solaris", "wasip1", "windows", "zos"}
	knownArch = []string{"386", "amd64", "amd64p32", "arm", "arm64", "arm64be", "armbe", "loong64", "mips", "mips64", "mips64le",
		"mips64p32", "mips64p32le", "mipsle", "ppc", "ppc64", "ppc64le", "riscv", "riscv64", "s390", "s390x", "sparc", "sparc64", "wasm"}
)

// Compare orders platforms by OS, then by ARCH.
func (p Platform) Compare(q Platform) int {
	return cmp.Or(strings.Compare(p.OS, q.OS), strings.Compare(p.Arch, q.Arch))
}

// ParsePlatforms parses platforms written as OS_ARCH and returns them in order, without
// duplicates. The error lists every word that is not a platform.
func ParsePlatforms(words []string) ([]Platform, error) {
	var platforms []Platform
	var bad []error
	for _, word := range words {
		os, arch, ok := strings.Cut(word, "_")
		if !ok {
			bad = append(bad, fmt.Errorf("%q is not a platform: write OS_ARCH, like linux_amd64", word))
			continue
		}
		p, err := ParsePlatform(os, arch)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		platforms = append(platforms, p)
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	slices.SortFunc(platforms, Platform.Compare)
	return slices.Compact(platforms), nil
}
