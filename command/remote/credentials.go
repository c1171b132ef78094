package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"runtime"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

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

// A configuration is one of the files of the clients' configuration.
type configuration struct {
	name string // for messages
	*clientconfig.File
}

func (c configuration) withFileName(err error) error { return fmt.Errorf("%s: %w", c.name, err) }

// configurations reads the files that exist, the one that counts first.
func configurations() iter.Seq2[configuration, error] {
	return func(yield func(configuration, error) bool) {
		files, err := configurationFiles(runtime.GOOS, os.Getenv)
		if err != nil {
			yield(configuration{}, err)
			return
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if !yield(configuration{cli.Printable(file), clientconfig.Parse(content)}, err) {
				return
			}
		}
	}
}

// ClientSettings returns what the configuration of clients says of where packages come from.
func ClientSettings() (s clientconfig.Settings, err error) {
	for c, err := range configurations() {
		if err != nil {
			return s, err
		}
		read, err := c.Settings()
		if err != nil {
			return s, c.withFileName(err)
		}
		s.Add(read)
	}
	return s, nil
}

// storedToken returns the token for a hostname from the configuration of clients, their login or
// their credentials helper, and its origin for messages. Both are empty if there is no token.
// The helper is run only if no file has a token of the host, as by clients.
func storedToken(ctx context.Context, hostname svchost.Hostname) (token, origin string, err error) {
	var helper *clientconfig.Helper
	for c, err := range configurations() {
		if err != nil {
			return "", "", err
		}
		token, err := c.Token(hostname)
		switch {
		case err != nil:
			return "", "", c.withFileName(err)
		case token != "":
			return token, c.name, nil
		case helper != nil:
			continue
		}
		if helper, err = c.Helper(); err != nil {
			return "", "", c.withFileName(err)
		}
	}
	if helper == nil {
		return "", "", nil
	}
	token, err = credentialsHelper(*helper).token(ctx, hostname, pluginFolders(runtime.GOOS, os.Getenv))
	return token, "the credentials helper " + cli.Printable(helper.Name), err
}
