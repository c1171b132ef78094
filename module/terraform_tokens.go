package module

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
)

func init() {
	caddy.RegisterModule(new(Tokens))
}

// Tokens authenticates clients by tokens, whose names and hashes are in a file.
// It is what the command line of Terraform and OpenTofu can send: they take a
// token from a `credentials` block or a variable `TF_TOKEN_*`, and know of no
// other credentials but those of `terraform login`.
//
// Every token has a line in the file, with a name, the SHA-256 of the token and
// options; text behind a `#` is a comment:
//
//	# NAME  HASH             OPTIONS
//	ci      sha256:4a5c…     groups=dev,release
//	jane    sha256:91b0…     expires=2027-01-01T00:00:00Z  # the laptop
//
// Lines are best added by `caddy terraform-registry token new NAME --file FILE`,
// which makes the token, prints it once and keeps only its hash; `token list`
// and `token revoke` do the rest. The user that Caddy runs as has to be able to
// read the file, and nobody else needs to.
//
// The file is read again when it has changed: a token that is revoked is refused
// within a second, without a reload. A line that is wrong fails the
// configuration when it is loaded; later it disables its own token, with an
// error in the log. Without the file no token is accepted.
//
// A token is sent as `Authorization: Bearer TOKEN`. It is accepted as the
// password of Basic authentication too, with any user name: that is what clients
// send when they download with the credentials of a `.netrc` file. A request
// with an unknown or expired token is one without credentials; why is in the
// debug log, which never has the token.
//
// These placeholders tell who it is:
//
// Placeholder | Description
// ------------|------------
// `{http.auth.user.id}` | the name of the token
// `{http.auth.user.groups}` | its groups, with commas between them
//
// In a Caddyfile it is an option of the registry, `auth terraform_tokens FILE`.
// In JSON it can also be a provider of the `authentication` handler, which
// refuses all requests without a token: put it behind a matcher that spares
// `/.well-known/terraform.json` then.
type Tokens struct {
	// The file with the tokens. Required. It must exist when the configuration is
	// loaded; an empty one is fine. Placeholders work that are known then, such as
	// `{env.*}`. A relative path is relative to the working directory of Caddy.
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

// Provision reads the file, so that a broken one fails `caddy validate`.
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
		return fmt.Errorf("file: %w: make a first token with `caddy terraform-registry token new NAME --file %s`", err, file)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("file: %w: let the user that Caddy runs as read it", err)
	case err != nil:
		return fmt.Errorf("file: %w", err)
	}
	return nil
}

// Authenticate implements caddyauth.Authenticator. It writes no challenge:
// whether somebody without a token is to have one is for others to decide.
func (t *Tokens) Authenticate(_ http.ResponseWriter, r *http.Request) (caddyauth.User, bool, error) {
	secret := presentedToken(r)
	if secret == "" {
		return caddyauth.User{}, false, nil
	}
	subject, err := t.tokens.Find(secret)
	if err != nil {
		t.logger.Debug("token refused", "reason", err.Error())
		return caddyauth.User{}, false, nil
	}
	return caddyauth.User{
		ID:       subject.ID,
		Metadata: map[string]string{"groups": strings.Join(subject.Groups, ",")},
	}, true, nil
}

// presentedToken is the token that a request has; empty if there is none, which
// is also what a client sends that has an empty token (checklist 19).
func presentedToken(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, secret, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

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
