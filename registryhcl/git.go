package registryhcl

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Git says that the versions of a hosted module are the tags of a git repository.
type Git struct {
	// URL of the repository, which begins with https:// and has no user.
	URL string

	// Folder of the module in the repository; empty: its root.
	Folder string

	// Tags are the tags that are versions.
	Tags address.TagPattern

	// FetchAll reports whether every version is fetched when its tag is seen. Otherwise a version is
	// fetched when it is first asked for.
	FetchAll bool
}

// DefaultTags is the pattern of tags where none is given.
const DefaultTags = "v" + address.VersionPlace

// fetchAll is the word for Git.FetchAll.
const fetchAll = "all"

// ParseGit makes a Git of the texts in a file or of a command. Empty texts are defaults.
func ParseGit(repository, folder, tags, fetch string) (g Git, err error) {
	if g.URL, err = repositoryURL(repository); err != nil {
		return g, fmt.Errorf("url %w", err)
	}
	if g.Folder, err = repositoryFolder(folder); err != nil {
		return g, fmt.Errorf("folder %w", err)
	}
	if tags == "" {
		tags = DefaultTags
	}
	if len(tags) > maxReason {
		return g, errors.New("tags is too long: shorten it")
	}
	if g.Tags, err = address.ParseTagPattern(tags); err != nil {
		return g, fmt.Errorf("tags: %w", err)
	}
	if g.FetchAll = fetch == fetchAll; fetch != "" && !g.FetchAll {
		return g, fmt.Errorf("fetch is %s: write all, or leave it out to fetch a version when it is first asked for", address.Plain(fetch))
	}
	return g, nil
}

// repositoryURL returns the URL of a repository. It may be written to files and shown on pages, so it
// has no credentials.
func repositoryURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") == "" ||
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || len(text) > maxURL {
		return "", errors.New("must be the URL of a repository: begin it with https://, without a user, a password or a branch")
	}
	if strings.Contains(strings.Trim(u.Path, "/"), "//") {
		return "", errors.New("has the folder of a module after //, as sources in Terraform have: name it as folder")
	}
	u.Host = strings.ToLower(u.Host)
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u.String(), nil
}

// inFolderNames are the characters that clients find in the folder of a location.
const inFolderNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+"

// repositoryFolder returns the path of a folder in a repository; empty for the root.
func repositoryFolder(text string) (string, error) {
	folder := strings.Trim(text, "/")
	if folder == "" || folder == "." {
		return "", nil
	}
	plain := strings.Trim(strings.ReplaceAll(folder, "/", ""), inFolderNames) == ""
	if !fs.ValidPath(folder) || path.Clean(folder) != folder || !plain || len(folder) > maxURL {
		return "", errors.New("must be the path of a folder in the repository, such as modules/vpc: its names have letters, digits and -._~+ only")
	}
	return folder, nil
}

// git reads the block. One that cannot be read does not disconnect the module: see Problem.MayWithdraw.
func (p *parser) git(b *hclsyntax.Block) {
	line := b.TypeRange.Start.Line
	switch {
	case len(b.Labels) > 0:
		p.problem(line, true, `git has no label: write git { url = "https://…" }`)
		return
	case p.metadata.Git != nil:
		p.problem(line, false, "there is more than one block git: a module has one repository")
		return
	}
	texts := map[string]*string{"url": new(string), "folder": new(string), "tags": new(string), "fetch": new(string)}
	for _, a := range inOrder(b.Body.Attributes) {
		text, known := texts[a.Name]
		if !known {
			p.problem(a.NameRange.Start.Line, true, "there is no argument %s in a block git: use url, folder, tags or fetch", address.Plain(a.Name))
			return // it may be what restricts the versions
		}
		value, ok := literal(a.Expr)
		if !ok {
			p.problem(a.NameRange.Start.Line, true, "%s must be a plain string: write it in quotation marks", a.Name)
			return
		}
		*text = value
	}
	for _, inner := range b.Body.Blocks {
		p.problem(inner.TypeRange.Start.Line, true, "there are no blocks in a block git: close it with } before this line")
		return
	}
	g, err := ParseGit(*texts["url"], *texts["folder"], *texts["tags"], *texts["fetch"])
	if err != nil {
		p.problem(line, true, "git: %v", err)
		return
	}
	p.metadata.Git = &g
}

// SetGit returns the content of a registry.hcl with a block git, in the place of the one that it has.
// Everything else stays as written.
func SetGit(content []byte, g Git) ([]byte, error) {
	want, _ := Parse(content)
	want.Git = &g
	after, err := g.set(content)
	if err != nil {
		return nil, err
	}
	return after, checkEdited(content, after, want)
}

func (g Git) set(content []byte) ([]byte, error) {
	body, content, err := parseForEdit(content)
	if err != nil {
		return nil, err
	}
	block := g.render()
	for _, b := range body.Blocks {
		if b.Type != "git" {
			continue
		}
		if m, _ := Parse(content); m.Git != nil && *m.Git == g {
			return content, nil
		}
		return splice(content, b.Range().Start.Byte, b.CloseBraceRange.End.Byte, bytes.TrimSpace(block)), nil
	}
	return appendBlock(content, block), nil
}

// render returns the block, on lines of its own.
func (g Git) render() []byte {
	file := hclwrite.NewEmptyFile()
	body := file.Body().AppendNewBlock("git", nil).Body()
	body.SetAttributeValue("url", cty.StringVal(g.URL))
	if g.Folder != "" {
		body.SetAttributeValue("folder", cty.StringVal(g.Folder))
	}
	if tags := g.Tags.String(); tags != DefaultTags {
		body.SetAttributeValue("tags", cty.StringVal(tags))
	}
	if g.FetchAll {
		body.SetAttributeValue("fetch", cty.StringVal(fetchAll))
	}
	return file.Bytes()
}

// equal reports whether two files follow the same repository in the same way.
func (g *Git) equal(other *Git) bool {
	if g == nil || other == nil {
		return g == other
	}
	return *g == *other
}
