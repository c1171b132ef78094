package upstream

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// LockFileName is what clients call the lock file of a configuration.
const LockFileName = ".terraform.lock.hcl"

// maxLockFile is some hundred times what a large configuration's has.
const maxLockFile = 1 << 20

// A Locked provider is one that a lock file names: init takes this version and
// no other, from a package with one of these hashes.
type Locked struct {
	Address     address.Address // with its hostname
	Version     string
	Constraints string   // of the configuration when it was locked; not what binds
	Hashes      []string // "h1:…", "zh:…", in the file's order
	From        string   // FILE:LINE

	// Legacy providers, registry.terraform.io/-/TYPE, are left behind by Terraform
	// 0.13 and of no registry. Nothing but their address is there then.
	Legacy bool
}

// Requirement asks for the locked version and no other.
func (l Locked) Requirement() (Requirement, error) {
	v, err := address.ParseProviderVersion(l.Version)
	if err != nil {
		return Requirement{}, err
	}
	return Requirement{Address: l.Address, Constraints: exactly(v), From: []string{l.From}}, nil
}

var lockFileSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "provider", LabelNames: []string{"source"}}}}

var lockedSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "version"}, {Name: "constraints"}, {Name: "hashes"}}}

// ParseLockFile reads the content of a .terraform.lock.hcl and returns what it
// locks, ordered by address. The name is for errors, which say all that is wrong
// with it. Attributes and blocks of later clients are passed over.
func ParseLockFile(name string, content []byte) ([]Locked, error) {
	if len(content) > maxLockFile {
		return nil, fmt.Errorf("%s: it is larger than %d bytes, which no lock file is", name, maxLockFile)
	}
	file, err := parseNative(name, content)
	if err != nil {
		return nil, err
	}
	body, _, diags := file.Body.PartialContent(lockFileSchema)
	if err := located(name, diags); err != nil {
		return nil, err
	}
	var all []Locked
	var bad []error
	seen := make(map[address.Address]string)
	for _, block := range body.Blocks {
		l, err := parseLocked(block, content)
		if err == nil && seen[l.Address] != "" {
			err = fmt.Errorf("%s is locked at %s already: remove one of the two", l.Address, seen[l.Address])
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", position(block.DefRange), err))
			continue
		}
		seen[l.Address] = l.From
		all = append(all, l)
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Locked) int { return strings.Compare(a.Address.String(), b.Address.String()) })
	return all, nil
}

func parseLocked(block *hcl.Block, src []byte) (Locked, error) {
	l := Locked{From: position(block.DefRange)}
	source := block.Labels[0]
	if strings.Count(source, "/") != 2 {
		return l, fmt.Errorf("%q is not HOSTNAME/NAMESPACE/TYPE, as clients lock providers: write its hostname too", source)
	}
	var err error
	if typ, legacy := strings.CutPrefix(source, string(TerraformHost)+"/-/"); legacy {
		l.Address, err = parseSource(string(TerraformHost)+"/hashicorp/"+typ, "")
		l.Address.Namespace, l.Legacy = "-", true
		return l, err
	}
	if l.Address, err = parseSource(source, ""); err != nil {
		return l, err
	}
	if builtIn(l.Address) {
		return l, fmt.Errorf("%s is part of the client itself, and cannot be locked: remove it", l.Address)
	}
	attributes, _, diags := block.Body.PartialContent(lockedSchema)
	if diags.HasErrors() {
		return l, fmt.Errorf("%s: %w", l.Address, diags)
	}
	text := func(name string) (string, error) {
		a := attributes.Attributes[name]
		if a == nil {
			return "", nil
		}
		s, ok := literal(a.Expr, src)
		if !ok {
			return "", fmt.Errorf("%s: %s is not a string in quotes", l.Address, name)
		}
		return s, nil
	}
	if l.Version, err = text("version"); err != nil {
		return l, err
	}
	if l.Version == "" {
		return l, fmt.Errorf("%s has no version: let init write the lock file anew", l.Address)
	}
	if _, err := address.ParseProviderVersion(l.Version); err != nil {
		return l, fmt.Errorf("%s: %w", l.Address, err)
	}
	if l.Constraints, err = text("constraints"); err != nil {
		return l, err
	}
	if _, err := ParseConstraints(l.Constraints); err != nil {
		return l, fmt.Errorf("%s: %w", l.Address, err)
	}
	l.Hashes, err = parseHashes(attributes.Attributes["hashes"], src)
	if err != nil {
		return l, fmt.Errorf("%s: %w", l.Address, err)
	}
	return l, nil
}

func parseHashes(a *hcl.Attribute, src []byte) ([]string, error) {
	if a == nil {
		return nil, nil
	}
	list, diags := hcl.ExprList(a.Expr)
	if diags.HasErrors() {
		return nil, errors.New("hashes is not a list")
	}
	hashes := make([]string, 0, len(list))
	for _, expr := range list {
		hash, ok := literal(expr, src)
		scheme, sum, _ := strings.Cut(hash, ":")
		if !ok || scheme == "" || sum == "" {
			return nil, fmt.Errorf("the hash on line %d is not a string like \"h1:…\" or \"zh:…\"", expr.Range().Start.Line)
		}
		hashes = append(hashes, hash)
	}
	return hashes, nil
}
