package address

import (
	"fmt"
	"strings"

	tfaddr "github.com/hashicorp/terraform-registry-address"
)

// maxSource is longer than any address with a folder of its package.
const maxSource = 1024

// ParseModuleSource reads the source of a module call as clients do, if the module
// comes from a registry: [HOSTNAME/]NAMESPACE/NAME/SYSTEM[//FOLDER]. The folder is the
// folder of the module in its package, empty for the root. All other sources, such as
// Git repositories and local folders, are errors.
func ParseModuleSource(source string) (a Address, folder string, err error) {
	if len(source) > maxSource {
		return Address{}, "", fmt.Errorf("the source of a module is at most %d characters long", maxSource)
	}
	parsed, err := tfaddr.ParseModuleSource(source)
	if err != nil {
		return Address{}, "", err
	}
	p := parsed.Package
	hostname := ""
	if written, _, _ := strings.Cut(source, "//"); strings.Count(written, "/") == 3 {
		hostname = p.Host.ForDisplay()
	}
	a, err = ParseModule(hostname, p.Namespace, p.Name, p.TargetSystem)
	return a, parsed.Subdir, err
}
