package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/zclconf/go-cty/cty"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
)

// EnvironmentTokens returns the tokens that clients would take from variables such
// as TF_TOKEN_example_com: an underscore stands for a dot, two for a dash.
func EnvironmentTokens(environ []string) map[svchost.Hostname]string {
	tokens := make(map[svchost.Hostname]string)
	for _, variable := range environ {
		name, token, _ := strings.Cut(variable, "=")
		name, ours := strings.CutPrefix(name, "TF_TOKEN_")
		if !ours || token == "" {
			continue
		}
		name = strings.ReplaceAll(strings.ReplaceAll(name, "__", "-"), "_", ".")
		if hostname, err := address.ParseHostname(name); err == nil {
			tokens[hostname] = token
		}
	}
	return tokens
}

// tokenLife is how long a token counts that was found, or that none was, or the error: a helper
// is not asked again for each package. Users who watch a log for days get new tokens.
const tokenLife = time.Minute

// ClientTokens returns a function that returns the token that clients send to a hostname: from
// the environment, their configuration, their login, or their credentials helper. It is empty
// if there is none.
func ClientTokens() func(context.Context, svchost.Hostname) (string, error) {
	type found struct {
		token string
		err   error
	}
	var known cache.Cache[svchost.Hostname, found]
	return func(ctx context.Context, hostname svchost.Hostname) (string, error) {
		f, err := known.Load(ctx, hostname, func(ctx context.Context) (f found, _ time.Duration, _ error) {
			f.token, f.err = clientToken(ctx, hostname)
			return f, tokenLife, ctx.Err()
		})
		return f.token, cmp.Or(err, f.err)
	}
}

func clientToken(ctx context.Context, hostname svchost.Hostname) (string, error) {
	if token := EnvironmentTokens(os.Environ())[hostname]; token != "" {
		return token, CheckToken(token, "the environment")
	}
	token, origin, err := storedToken(ctx, hostname)
	if err != nil {
		return "", err
	}
	return token, CheckToken(token, origin)
}

// ClientSettings returns what the configuration of clients says of where packages come from.
func ClientSettings() (s clientconfig.Settings, err error) {
	files, err := configurationFiles(runtime.GOOS, os.Getenv)
	if err != nil {
		return s, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return s, err
		}
		read, err := clientconfig.ReadSettings(content, file)
		if err != nil {
			return s, fmt.Errorf("%s: %w", cli.Printable(file), err)
		}
		s.Add(read)
	}
	return s, nil
}

// storedToken returns the token for a hostname from the configuration of clients, their login or
// their credentials helper, and its origin for messages. Both are empty if there is no token.
// The helper is run only if no file has a token of the host, as by clients.
func storedToken(ctx context.Context, hostname svchost.Hostname) (token, origin string, err error) {
	files, err := configurationFiles(runtime.GOOS, os.Getenv)
	if err != nil {
		return "", "", err
	}
	var helper *credentialsHelper
	for _, file := range files {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", "", err
		}
		token, err := tokenIn(content, file, hostname)
		if token != "" || err != nil {
			return token, cli.Printable(file), err
		}
		if helper == nil {
			if helper, err = helperIn(content, file); err != nil {
				return "", "", err
			}
		}
	}
	if helper == nil {
		return "", "", nil
	}
	token, err = helper.token(ctx, hostname, pluginFolders(runtime.GOOS, os.Getenv))
	return token, "the credentials helper " + cli.Printable(helper.name), err
}

// tokenIn reads the token for a hostname from a configuration of the clients. It ignores
// mistakes elsewhere in the file. Errors quote nothing of the file.
func tokenIn(content []byte, file string, hostname svchost.Hostname) (string, error) {
	parsed, diagnostics := clientconfig.Parse(content, file)
	if parsed != nil {
		blocks, _, more := parsed.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "credentials", LabelNames: []string{"hostname"}}}})
		diagnostics = append(diagnostics, more...)
		for _, b := range blocks.Blocks {
			if name, err := address.ParseHostname(b.Labels[0]); err != nil || name != hostname {
				continue
			}
			attributes, _, _ := b.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "token"}}})
			if a := attributes.Attributes["token"]; a != nil {
				if v, bad := a.Expr.Value(nil); !bad.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() && v.AsString() != "" {
					return v.AsString(), nil
				}
			}
			return "", fmt.Errorf("%s: its credentials for %s have no token", cli.Printable(file), hostname.ForDisplay())
		}
	}
	for _, d := range diagnostics {
		if d.Summary == "Missing block label" { // {"credentials": {}}, as a logout leaves it
			continue
		}
		if d.Severity == hcl.DiagError && d.Subject != nil {
			return "", fmt.Errorf("%s: line %d cannot be read: correct it", cli.Printable(file), d.Subject.Start.Line)
		}
	}
	return "", nil
}
