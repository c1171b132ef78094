package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/hashicorp/go-retryablehttp"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/cobra"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

// DefaultIDTokenVariable is the variable that the manual recommends for the token of a GitLab
// job.
const DefaultIDTokenVariable = "TERRAFORM_REGISTRY_ID_TOKEN"

// A TokenFinder finds the token for a registry.
type TokenFinder struct {
	hostname svchost.Hostname
	file     string // with nothing but the token; empty: none
	audience string // of a requested token; empty: the hostname
	variable string // with the token of a job
	named    bool   // the user named the variable, so that it must be there
}

// AddTokenFlags adds the flags for the token of a registry.
func AddTokenFlags(cmd *cobra.Command) {
	cmd.Flags().String("token-file", "", "A `file` with nothing but the token")
	cmd.Flags().String("audience", "", "The `audience` of the token that a CI job requests (default: https://HOST)")
	cmd.Flags().String("id-token-variable", DefaultIDTokenVariable, "The environment `variable` with the token of a CI job")
}

// TokenFlags finds the token of a registry by the flags of AddTokenFlags.
func TokenFlags(fl caddycmd.Flags, hostname svchost.Hostname) TokenFinder {
	return TokenFinder{
		hostname: hostname, file: fl.String("token-file"), audience: fl.String("audience"),
		variable: fl.String("id-token-variable"), named: fl.Changed("id-token-variable"),
	}
}

// A foundToken is the token that was found, if any.
type foundToken struct {
	secret  string    // empty: none
	origin  string    // for messages
	expires time.Time // of a token that can be requested again; zero: it cannot, or never expires
}

// find finds the token. Having no token is no error: the registry says whether it requires
// one.
func (f TokenFinder) find(ctx context.Context, client *retryablehttp.Client) (foundToken, error) {
	t, err := f.lookFor(ctx, client)
	if err == nil {
		err = CheckToken(t.secret, t.origin)
	}
	return t, err
}

// TrimToken returns the token in a file, without the line break and the byte order mark that
// editors and shells write. PowerShell writes UTF-16.
func TrimToken(content []byte) string {
	if text, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), content); err == nil {
		content = text
	}
	return string(bytes.TrimSpace(content))
}

// CheckToken checks that a token can be sent. The error names its origin and does not repeat
// the token.
func CheckToken(token, origin string) error {
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("the token from %s has a space or line break in it: copy it again", origin)
	}
	return nil
}

func (f TokenFinder) lookFor(ctx context.Context, client *retryablehttp.Client) (t foundToken, err error) {
	if f.file != "" {
		content, err := os.ReadFile(f.file)
		if err != nil {
			return t, fmt.Errorf("--token-file: %w", err)
		}
		if t = (foundToken{secret: TrimToken(content), origin: cli.Printable(f.file)}); t.secret == "" {
			return t, fmt.Errorf("--token-file: %s is empty", t.origin)
		}
		return t, nil
	}
	if token := EnvironmentTokens(os.Environ())[f.hostname]; token != "" {
		variable, _ := handlers.TokenVariable(f.hostname)
		return foundToken{secret: token, origin: variable}, nil
	}
	token, origin, err := storedToken(ctx, f.hostname)
	if token != "" || err != nil {
		return foundToken{secret: token, origin: origin}, err
	}
	if token := os.Getenv(f.variable); token != "" {
		return foundToken{secret: token, origin: f.variable}, nil
	}
	if f.named {
		return t, fmt.Errorf("--id-token-variable: %s is not in the environment: add it to id_tokens of the job", cli.Printable(f.variable))
	}
	return f.request(ctx, client)
}

// MaxToken bounds the length of an answer with a token, in bytes.
const MaxToken = 64 << 10

// request requests the token of a job of GitHub Actions or Forgejo.
func (f TokenFinder) request(ctx context.Context, client *retryablehttp.Client) (t foundToken, err error) {
	from, bearer := os.Getenv("ACTIONS_ID_TOKEN_REQUEST_URL"), os.Getenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
	if from == "" || bearer == "" {
		return t, nil
	}
	failed := func(why string) (foundToken, error) {
		return t, fmt.Errorf("the token of the CI job could not be requested: %s", why)
	}
	u, err := url.Parse(from)
	if err != nil {
		return failed("ACTIONS_ID_TOKEN_REQUEST_URL is not a URL")
	}
	query := u.Query()
	query.Set("audience", cmp.Or(f.audience, "https://"+string(f.hostname)))
	u.RawQuery = query.Encode()
	r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return failed("ACTIONS_ID_TOKEN_REQUEST_URL is not a URL")
	}
	r.Header.Set("Authorization", "bearer "+bearer)
	r.Header.Set("Accept", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return failed(transportReason(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return failed(fmt.Sprintf("%s answered %d", u.Host, answer.StatusCode))
	}
	var document struct {
		Value string `json:"value"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, MaxToken)).Decode(&document); err != nil || document.Value == "" {
		return failed(u.Host + " answered without a token")
	}
	return foundToken{document.Value, "the CI job", expiryOf(document.Value)}, nil
}

// expiryOf reads from a token when it expires; zero if the token does not say.
func expiryOf(token string) time.Time {
	expires, _ := UnverifiedClaims(token)["exp"].(float64) // RFC 7519 has fractions, too
	if expires <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(expires), 0)
}

// UnverifiedClaims returns the claims of a JSON Web Token; nil if it is another kind of token.
func UnverifiedClaims(token string) (claims map[string]any) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return nil
	}
	return claims
}

// renewBefore is the time before its expiry at which a token is requested again: the request
// takes time, and clocks differ.
const renewBefore = time.Minute

// A runToken is the token of a run, which may take longer than the token of a CI job is
// valid. It is safe for concurrent use.
type runToken struct {
	finder TokenFinder
	client *retryablehttp.Client

	mutex sync.Mutex
	foundToken
}

// current returns the token, requested again if it is about to expire.
func (t *runToken) current(ctx context.Context) (secret string, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.expires.IsZero() || time.Until(t.expires) > renewBefore {
		return t.secret, nil
	}
	next, err := t.finder.request(ctx, t.client)
	switch {
	case err == nil && next.secret != "":
		t.foundToken = next
	case time.Now().Before(t.expires):
	default:
		return "", cmp.Or(err, errors.New("the token of the CI job has expired"))
	}
	return t.secret, nil
}

// hint says what to do when the registry refuses the token, or the lack of one.
func (f TokenFinder) hint(t foundToken) string {
	variable, ok := handlers.TokenVariable(f.hostname)
	switch {
	case t.secret != "":
		return "The token is that from " + t.origin + "."
	case os.Getenv("GITHUB_ACTIONS") == "true":
		return "No token was found: the job needs the permission id-token: write, or a secret in " + cmp.Or(variable, "a file for --token-file") + "."
	case f.withoutPort() != "":
		return "No token was found: clients have no variable for a host with a port, and do not use " + f.withoutPort() + " for it. Log in with terraform login, or name a file by --token-file."
	case ok:
		return "No token was found: set " + variable + ", log in with terraform login, or name a file by --token-file."
	}
	return "No token was found: log in with terraform login, or name a file by --token-file."
}

// withoutPort returns a variable that the user has set for the hostname although clients have
// no variables for hostnames with ports: the variable of the host without the port, or the
// same with the port appended. It is empty if there is no such variable.
func (f TokenFinder) withoutPort() string {
	host, port, found := strings.Cut(string(f.hostname), ":")
	if !found {
		return ""
	}
	variable, _ := handlers.TokenVariable(svchost.Hostname(host))
	for _, name := range []string{variable, variable + "_" + port} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}
