package authenticate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
)

func init() {
	caddy.RegisterModule(new(Tokens))
}

// Tokens authenticates clients by tokens whose names and hashes are listed in a file.
// Terraform and OpenTofu can send such tokens. They take a token from a `credentials`
// block or a variable `TF_TOKEN_*`, and support no other credentials except for
// `terraform login`.
//
// Every token has a line in the file, with a name, the SHA-256 of the token and
// options; text after a `#` is a comment:
//
//	# NAME  HASH             OPTIONS
//	ci      sha256:4a5c…     groups=dev,release
//	jane    sha256:91b0…     expires=2027-01-01T00:00:00Z  # the laptop
//
// To add a line, use `caddy-terraform-registry token new NAME --file FILE`, which
// generates the token, prints it once and stores only its hash. `token list` and
// `token revoke` list and revoke tokens. Only the user that Caddy runs as needs to
// be able to read the file.
//
// The file is read again when it has changed: a revoked token is refused within a
// second, without a reload. With an invalid line the configuration cannot be
// loaded; later, such a line disables its own token, with an error in the log.
// Without the file no token is accepted.
//
// A token is sent as `Authorization: Bearer TOKEN`. It is also accepted as the password
// of Basic authentication, with any user name, since clients send it in this way when
// they download with the credentials of a `.netrc` file. A request with an unknown or
// expired token is treated as one without credentials. The debug log has the reason,
// and never the token. A warning in the log tells that a token expires within 14 days,
// and another one that it has expired.
//
// These placeholders describe the authenticated client:
//
// Placeholder | Description
// ------------|------------
// `{http.auth.user.id}` | the name of the token
// `{http.auth.user.groups}` | its groups, with commas between them
//
// In a Caddyfile it is an option of the registry, `auth terraform_tokens FILE`.
// In JSON it can also be a provider of the `authentication` handler, which refuses
// all requests without a token. In that case put the handler behind a matcher that
// excludes `/.well-known/terraform.json`.
type Tokens struct {
	// The file with the tokens. Required. It must exist when the configuration is
	// loaded, but may be empty. Placeholders known at that time, such as `{env.*}`,
	// are replaced. A relative path is relative to the working directory of Caddy.
	File string `json:"file,omitempty"`

	logger *slog.Logger
	tokens *tokenfile.File
}

// CaddyModule returns the Caddy module information.
func (*Tokens) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.authentication.providers.terraform_tokens",
		New: func() caddy.Module { return new(Tokens) },
	}
}

// Provision reads the file, so that `caddy validate` fails if it is invalid.
func (t *Tokens) Provision(ctx caddy.Context) error {
	t.logger = ctx.Slogger()
	file, err := caddy.NewReplacer().ReplaceOrErr(t.File, true, true)
	if err != nil {
		return fmt.Errorf("file: %w", err)
	}
	if file == "" {
		return errors.New("file: it is required: name the file that has the tokens")
	}
	t.tokens, err = tokenfile.Open(file, t.logger, time.Now)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("file: %w: make a first token with `caddy-terraform-registry token new NAME --file %s`", err, file)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("file: %w: let the user that Caddy runs as read it", err)
	case err != nil:
		return fmt.Errorf("file: %w", err)
	}
	go t.tokens.Run(ctx)
	return nil
}

// Authenticate implements caddyauth.Authenticator. It writes no challenge: the
// handler decides whether a request without a token needs one.
func (t *Tokens) Authenticate(_ http.ResponseWriter, r *http.Request) (caddyauth.User, bool, error) {
	secret := presentedToken(r)
	if secret == "" {
		return caddyauth.User{}, false, nil
	}
	user, err := t.Identify(r.Context(), secret)
	if err != nil {
		t.logger.Debug("token refused", "reason", err.Error())
		return caddyauth.User{}, false, nil
	}
	return user, true, nil
}

// Identify returns the user of a token.
func (t *Tokens) Identify(_ context.Context, secret string) (caddyauth.User, error) {
	subject, err := t.tokens.Find(secret)
	return User(subject), err
}

// TokenFile returns the open file with the tokens.
func (t *Tokens) TokenFile() *tokenfile.File { return t.tokens }

// Caddyfile returns the provider in the form of a Caddyfile.
func (t *Tokens) Caddyfile() string { return "terraform_tokens " + t.tokens.Path() }

// UnmarshalCaddyfile sets up the provider from Caddyfile tokens. Syntax:
//
//	terraform_tokens <file>
func (t *Tokens) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the provider's name
	if !d.AllArgs(&t.File) || t.File == "" {
		return d.Err("terraform_tokens needs one argument, the file that has the tokens")
	}
	if d.NextBlock(d.Nesting()) {
		return d.Err("terraform_tokens has no block: its only option is the file")
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner       = (*Tokens)(nil)
	_ caddyauth.Authenticator = (*Tokens)(nil)
	_ caddyfile.Unmarshaler   = (*Tokens)(nil)
)
