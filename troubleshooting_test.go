package terraformregistry_test

import (
	"go/ast"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// explained are the packages, or files of packages, whose sentences users see: in
// answers, reports, logs, and when the configuration is loaded. Commands print the
// usage with messages about their arguments, and pages explain themselves, except for
// errors.
var explained = []string{
	"address", "wire", "signing", "tlog/anchor.go", "tlog/append.go", "tlog/checkpoint.go", "tlog/files.go", "tlog/folder.go", "tlog/key.go", "tlog/lag.go", "tlog/log.go", "tlog/open.go", "tlog/restore.go", "tlog/tidy.go", "tlog/record", "tlog/vault", "tlog/verify", "tree", "tree/disk", "tree/bucket", "tree/iofs", "tree/source", "archive", "registryhcl", "index", "index/changes", "index/ledger", "index/metadata", "index/scanlog", "index/report", "index/layout", "index/keys", "index/queue", "index/sharded", "index/offer", "index/release", "index/memo", "index/watch", "index/catalog", "index/content", "index/moduledoc", "access", "access/tokenfile", "access/oidc", "access/signin", "usage",
	"upstream", "upstream/git", "pull", "pull/flight", "pull/quota", "pull/versionlist", "pull/follow", "publish", "handlers", "handlers/webhook", "module", "module/storage", "module/authenticate", "caddyfile", "blob",
	"pages/errorpage.go", "pages/docspage.go", "pages/modulefile.go", "pages/signin.go",
	"upstream/lockfile", "clientconfig",
}

// unexplained are literals of these packages that only look like sentences, or that
// users never see. They have … for each part that is filled in.
var unexplained = []string{
	// The beginnings of formats, and texts that are written into files.
	"caddy-terraform-registry memo 4", "caddy-terraform-registry digests 1", "terraform registry link key", "terraform registry seal",
	"Kept by the registry: …", "…these keys came from the origin. Delete this line to pin them, so that no others count.",

	// Names of Windows, values of headers, and messages of HCL and git.
	"system volume information", "Missing block label",
	`Bearer realm="terraform registry", error="invalid_token"`, "GET, HEAD, PUT", "GET, HEAD, DELETE", "…, max-age=31536000, immutable",
	"the module of run …", "couldn't find remote ref", "not our ref", "does not allow request for unadvertised object", "Server does not support",
	"No space left on device", "died of signal", "Read-only file system", "Too many open files", "No file descriptors available", "Out of memory", "Cannot allocate memory", "Resource temporarily unavailable",

	// Mistakes of the calling code.
	"publishing needs a tree, its index and locks", "the summary is damaged", "the configuration that had the storage has gone",
	"the file was not opened", "how much is to be sent is not known", "the store sends the file with a Content-Encoding, which clients undo", "the S3 driver has no client", "getting the events app: …", "closing the index: …", "closing an upstream: …", "closing a transparency log: …", "the log has been closed",

	// Parts of other sentences.
	"SYSTEM (such as aws, or any)", "… in 30 days, last on …", "its version, such as 1.0.0", "such file of …", "This page in …", "module service's URL",
	"that is not the address of …", "a provider: use NAMESPACE/TYPE", "a module: use NAMESPACE/NAME/SYSTEM",
	"the repository does not exist",
	"package of the module", "documentation of the release", "refused these credentials", "…: …, at …", "is a directory",
	"reading the folders of …: …", "opening the folder: …",

	// Sentences that another sentence replaces, or that come together with the cause.
	"it is not the form of a digest", "the file is larger than … bytes", "the package unpacks to more than … bytes",
	"the store refused to write beside another write, which failed",
	"it is not offered", "the origin lists no version that clients accept", "the tree may have it in a moment", "there is no package for the platform", "no package for the platform may be fetched",
	"another key has signed it", "it is still being fetched", "the commit has no such folder", "git was killed", "git failed on this machine", "it is being tested", "segments were merged meanwhile", "the segment is damaged",
}

// The manual has every sentence that users can see.
func TestEverySentenceIsExplained(t *testing.T) {
	spans := codeSpans(t, "docs/troubleshooting.md", "docs/operate.md")
	for _, dir := range explained {
		t.Run(dir, func(t *testing.T) {
			for _, s := range sentences(t, dir) {
				isOneOf := func(all []string) bool {
					return slices.ContainsFunc(all, func(one string) bool { return same(one, s.text) })
				}
				if !isOneOf(unexplained) && !isOneOf(spans) {
					t.Errorf("%s: neither docs/troubleshooting.md nor docs/operate.md has\n\t%s", s.at, s.text)
				}
			}
		})
	}
}

// The manual has no outdated sentence: every sentence in the first column of its
// tables, except those about clients, is in the code.
func TestNoSentenceIsOutdated(t *testing.T) {
	content := read(t, "docs/troubleshooting.md")
	_, ours, found := strings.Cut(content, "\n## What the registry answers\n")
	if !found {
		t.Fatal("docs/troubleshooting.md has no such chapter")
	}
	var said []string
	for _, dir := range append(explained, "command", "command/cli", "command/remote", "command/publish", "command/mirror") {
		for _, s := range sentences(t, dir) {
			said = append(said, s.text)
		}
	}
	for line := range strings.Lines(ours) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || cells[0] != "" {
			continue
		}
		for _, match := range span.FindAllStringSubmatch(cells[1], -1) {
			text := fill(match[1] + match[2])
			if isSentence("", text) && !slices.ContainsFunc(said, func(s string) bool { return same(text, s) }) {
				t.Errorf("nothing says any more\n\t%s", text)
			}
		}
	}
}

// Every message of the log is in the manual with its level.
func TestEveryLogMessageIsExplained(t *testing.T) {
	content := read(t, "docs/operate.md")
	rows := make(map[string][]string) // code spans by level
	for _, row := range regexp.MustCompile(`(?m)^\| (debug|info|warn|error) \| (.*?) \| `).FindAllStringSubmatch(content, -1) {
		for _, match := range span.FindAllStringSubmatch(row[2], -1) {
			rows[row[1]] = append(rows[row[1]], fill(match[1]+match[2]))
		}
	}
	logged := 0
	for _, dir := range explained {
		if path.Ext(dir) != "" || dir == "blob" { // its only message is in a paragraph
			continue
		}
		for _, call := range calls(t, dir) {
			level, message := logCall(call)
			if message == "" {
				continue
			}
			logged++
			if !slices.ContainsFunc(rows[level], func(s string) bool { return same(s, message) }) {
				t.Errorf("%s: docs/operate.md has no row for %s at the level %s", dir, message, level)
			}
		}
	}
	if logged < 25 {
		t.Errorf("there are only %d messages", logged)
	}
}

// logCall returns the level and message that a call logs, or nothing if it logs none.
func logCall(call *ast.CallExpr) (level, message string) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return "", ""
	}
	name, args := strings.TrimSuffix(f.Sel.Name, "Context"), call.Args
	if name != f.Sel.Name {
		args = args[1:]
	}
	switch name {
	case "Debug", "Info", "Warn", "Error":
		level = strings.ToLower(name)
	default:
		at := slices.IndexFunc(args, func(a ast.Expr) bool {
			l, ok := a.(*ast.SelectorExpr)
			return ok && strings.HasPrefix(l.Sel.Name, "Level")
		})
		if at < 0 || at+1 == len(args) {
			return "", ""
		}
		level, args = strings.ToLower(strings.TrimPrefix(args[at].(*ast.SelectorExpr).Sel.Name, "Level")), args[at+1:]
	}
	if len(args) == 0 {
		return "", ""
	}
	text, _ := literal(args[0])
	return level, fill(text)
}

// The manual has the statuses of answers in parentheses after the sentence, or after
// several sentences with the same status. They agree with the code.
func TestStatusesOfAnswers(t *testing.T) {
	content := read(t, "docs/troubleshooting.md")
	status := regexp.MustCompile(`\((\d{3})`)
	documented := make(map[string][]string) // statuses by sentence
	for line := range strings.Lines(content) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		statuses := status.FindAllStringSubmatch(span.ReplaceAllString(cells[1], ""), -1)
		for _, match := range span.FindAllStringSubmatch(cells[1], -1) {
			for _, s := range statuses {
				text := fill(match[1] + match[2])
				documented[text] = append(documented[text], s[1])
			}
		}
	}
	for text, want := range answers(t) {
		for s, got := range documented {
			if same(s, text) && has(s, text) && !slices.Contains(got, want) {
				t.Errorf("%s\n\tis answered with %s, not %s", text, want, got)
			}
		}
	}
}

// answers returns the statuses of the errors in answers of handlers, by sentence.
func answers(t *testing.T) map[string]string {
	t.Helper()
	codes := make(map[string]string)
	for code := 400; code < 600; code++ {
		codes["Status"+strings.ReplaceAll(http.StatusText(code), " ", "")] = strconv.Itoa(code)
	}
	found := make(map[string]string)
	for _, call := range calls(t, "handlers") {
		f, ok := call.Fun.(*ast.Ident)
		if !ok || f.Name != "fail" || len(call.Args) < 2 {
			continue
		}
		if status, ok := call.Args[0].(*ast.SelectorExpr); ok {
			text, _ := literal(call.Args[1])
			if code := codes[status.Sel.Name]; code != "" && isSentence("", fill(text)) {
				found[fill(text)] = code
			}
		}
	}
	if len(found) < 30 {
		t.Fatalf("there are %d answers", len(found))
	}
	return found
}

// Every reason of a report is explained, in a row of its own. Reports call two of the reasons
// by the name of another.
func TestEveryReasonIsExplained(t *testing.T) {
	content := read(t, "docs/troubleshooting.md")
	for name, value := range constants(t, "tree/finding.go", "Reason") {
		if name == "Exhausted" || name == "StoreFailed" {
			continue // reports say unreadable
		}
		if ast.IsExported(name) && !strings.Contains(content, "\n| `"+value+"` |") {
			t.Errorf("%s is not explained", value)
		}
	}
}

// The events of upstreams and the reasons why they fail are labels of metrics.
func TestEveryEventOfUpstreamsIsExplained(t *testing.T) {
	spans := codeSpans(t, "docs/operate.md")
	words := slices.Collect(maps.Values(constants(t, "pull/events.go", "EventKind")))
	file, _ := parse(t, "pull/errors.go")
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncDecl); ok {
			return f.Name.Name == "Reason"
		}
		if e, ok := n.(ast.Expr); ok {
			if word, ok := literal(e); ok && word != "" {
				words = append(words, word)
			}
		}
		_, isConstants := n.(*ast.GenDecl)
		return !isConstants
	})
	if len(words) < 20 {
		t.Fatalf("there are only %q", words)
	}
	for _, word := range words {
		if !slices.Contains(spans, word) {
			t.Errorf("%s is not explained", word)
		}
	}
}

// The page begins with ten problems. Each has a message in the words of clients, its
// cause and a cure.
func TestTroubleshootingBeginsWithFrequentProblems(t *testing.T) {
	content := read(t, "docs/troubleshooting.md")
	_, chapter, _ := strings.Cut(content, "\n## ")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	problems := strings.Split(chapter, "\n### ")[1:]
	if len(problems) != 10 {
		t.Errorf("there are %d problems, want ten", len(problems))
	}
	for _, p := range problems {
		for _, part := range []string{"\n> `", "\n**Cause.** ", "\n**What to do.** "} {
			if !strings.Contains(p, part) {
				t.Errorf("%q has no %q", strings.SplitN(p, "\n", 2)[0], strings.TrimSpace(part))
			}
		}
	}
}
