package blob

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestS3(t *testing.T) {
	for name, test := range storeRules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, openBucket(t, options{url: newStore(t).url, prefix: "team/x"}))
		})
	}
}

func TestHowOftenS3IsAsked(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	archive := zipOf(t, 2000)
	put(t, b, "dir/small", "small")
	put(t, b, "dir/empty", "")
	put(t, b, "dir/large", letters(5<<20))
	put(t, b, "dir/zip", archive)
	s.requests()
	for _, test := range []struct {
		name, want string
		ask        func() error
	}{
		{"stat", "[head:1]", func() error { _, err := b.Stat("dir/small"); return err }},
		{"stat of a directory", "[head:1 list:1]", func() error { _, err := b.Stat("dir"); return err }},
		{"the root", "[]", func() error { _, err := b.Stat("."); return err }},
		{"listing a directory", "[list:1]", func() error { _, err := b.ReadDir("dir"); return err }},
		{"a small file", "[get:1]", func() error { _, err := fs.ReadFile(b, "dir/small"); return err }},
		{"an empty file", "[get:1 head:1]", func() error { _, err := fs.ReadFile(b, "dir/empty"); return err }},
		{"a large file", "[get:2]", func() error { _, err := fs.ReadFile(b, "dir/large"); return err }},
		{"seeking", "[get:2]", func() error {
			return with(b, "dir/large", func(f openFile) error {
				f.Seek(0, io.SeekEnd)
				f.Seek(0, io.SeekStart)
				f.Seek(3<<20, io.SeekStart)
				_, err := io.ReadAll(f)
				return err
			})
		}},
		{"the directory of a zip and one of its files", "[get:3]", func() error {
			return with(b, "dir/zip", func(f openFile) error {
				r, err := zip.NewReader(f, int64(len(archive)))
				if err != nil {
					return err
				}
				if len(r.File) != 2000 {
					return fmt.Errorf("%d files", len(r.File))
				}
				content, err := fs.ReadFile(r, "file-1000")
				if len(content) != 2000 {
					return fmt.Errorf("%d bytes", len(content))
				}
				return err
			})
		}},
		{"create", "[head:1 put:1]", func() error { _, err := b.Create(t.Context(), "new", strings.NewReader("new")); return err }},
		{"a copy", "[put:1]", func() error { return b.Copy(t.Context(), "dir/large", "copy") }},
		{"a link", "[]", func() error { _, err := b.SignedURL(t.Context(), "copy", time.Hour); return err }},
	} {
		if err := test.ask(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := s.requests(); got != test.want {
			t.Errorf("%s: %s, should be %s", test.name, got, test.want)
		}
	}
}

type openFile interface {
	fs.File
	io.Seeker
	io.ReaderAt
}

func with(b *Bucket, name string, use func(openFile) error) error {
	f, err := b.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return use(f.(openFile))
}

// zipOf returns an archive with the given number of uncompressed files.
func zipOf(t *testing.T, files int) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range files {
		w, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("file-%d", i), Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, letters(2000))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAHundredThousandFilesAreAHundredRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 100,000 files")
	}
	s := newStore(t)
	// The server keeps ETags beside the objects. Files that were written around it,
	// which is quicker, all have the same ETag.
	etag := filepath.Join(t.TempDir(), "meta", "etag")
	if err := errors.Join(os.Mkdir(filepath.Dir(etag), 0o700), os.WriteFile(etag, []byte("d41d8cd98f00b204e9800998ecf8427e"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		dir := fmt.Sprintf("dir-%d", i)
		objects, metadata := filepath.Join(s.folder, dir), filepath.Join(s.metadata, dir)
		if err := errors.Join(os.Mkdir(objects, 0o700), os.MkdirAll(metadata, 0o700)); err != nil {
			t.Fatal(err)
		}
		for j := range 1000 {
			name := fmt.Sprint(j)
			err := os.WriteFile(filepath.Join(objects, name), nil, 0o600)
			if err = errors.Join(err, os.Symlink(filepath.Dir(filepath.Dir(etag)), filepath.Join(metadata, name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := openBucket(t, options{url: s.url})
	files, last := 0, ""
	err := b.Files(t.Context(), ".", func(name string, _ fs.FileInfo) error {
		if name <= last {
			return fmt.Errorf("%s after %s", name, last)
		}
		files, last = files+1, name
		return nil
	})
	if err != nil || files != 100_000 {
		t.Errorf("%d files, %v", files, err)
	}
	if got := s.requests(); got != "[list:100]" && got != "[list:101]" {
		t.Error(got)
	}
}

func TestFailuresOfS3AreNotAbsence(t *testing.T) {
	s := newStore(t)
	right := openBucket(t, options{url: s.url})
	put(t, right, "dir/a", "a")
	gone := openBucket(t, options{url: strings.Replace(s.url, "s3://", "s3://gone-", 1)})
	wrong := openBucket(t, options{url: s.url + "&profile=wrong"})
	unknown := openBucket(t, options{url: s.url + "&profile=unknown"})
	for _, test := range []struct {
		name   string
		bucket *Bucket
		status int // 0: the store answers itself
		code   string
		want   string
	}{
		{"an internal error", right, 500, "InternalError", "InternalError"},
		{"throttled", right, 503, "SlowDown", "SlowDown"},
		{"not allowed", right, 403, "AccessDenied", "refused these credentials"},
		{"expired credentials", right, 400, "ExpiredToken", "ExpiredToken"},
		{"another region", right, 301, "PermanentRedirect", "301"},
		{"archived", right, 403, "InvalidObjectState", "archived"},
		{"no such bucket", gone, 0, "", "NoSuchBucket"},
		{"a wrong secret", wrong, 0, "", "refused these credentials"},
		{"an unknown key", unknown, 0, "", "XAdminUserNotFound"}, // with status 404; S3 itself has 403
	} {
		t.Run(test.name, func(t *testing.T) {
			s.intercept(nil)
			if test.status != 0 {
				s.fail(test.status, test.code)
			}
			b := test.bucket
			for op, err := range operations(t, b) {
				if (test.bucket == gone || test.bucket == unknown) && op == "remove" {
					continue // the 404 of a HEAD has no code that distinguishes them
				}
				switch {
				case err == nil:
					t.Errorf("%s: no error", op)
				case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist):
					t.Errorf("%s: %v", op, err)
				case strings.Contains(err.Error(), "secret"), strings.Contains(err.Error(), "Signature="), strings.Contains(err.Error(), "127.0.0.1"):
					t.Errorf("%s tells too much: %v", op, err)
				}
				if op == "files" && !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: %v, should have %q", op, err, test.want)
				}
			}
		})
	}
}

// operations returns the errors of all operations that send requests to the store.
func operations(t *testing.T, b *Bucket) map[string]error {
	errs := make(map[string]error)
	_, errs["stat"] = b.Stat("dir/a")
	_, errs["open"] = b.Open("dir/a")
	_, errs["readdir"] = b.ReadDir("dir")
	errs["files"] = b.Files(t.Context(), ".", func(string, fs.FileInfo) error { return nil })
	_, errs["create"] = b.Create(t.Context(), "dir/b", strings.NewReader("b"))
	_, errs["replace"] = b.Replace(t.Context(), "dir/a", strings.NewReader("b"))
	errs["copy"] = b.Copy(t.Context(), "dir/a", "dir/c")
	errs["remove"] = b.Remove(t.Context(), "dir/a")
	return errs
}

func TestAStoreThatDoesNotAnswerIsGivenUp(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	put(t, b, "dir/a", "a")
	put(t, b, "large", letters(4*headSize))
	opened, err := b.Open("large")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	over := make(chan struct{})
	defer close(over)
	s.intercept(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-over:
		}
		return true
	})
	b.patience = patience{answer: 50 * time.Millisecond, idle: 50 * time.Millisecond, copy: 50 * time.Millisecond}
	errs := operations(t, b)
	_, errs["read"] = io.ReadAll(opened)
	for op, err := range errs {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

func TestABodyThatStopsIsGivenUp(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	want := letters(4 * headSize)
	put(t, b, "large", want)
	opened, err := b.Open("large")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	s.intercept(func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
		pass.ServeHTTP(&shortened{ResponseWriter: w, left: 1000, then: func() { <-r.Context().Done() }}, r)
		return true
	})
	b.patience.idle = 50 * time.Millisecond
	content, err := io.ReadAll(opened)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(want, string(content)) {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

// shortened is an answer whose body ends early.
type shortened struct {
	http.ResponseWriter
	left int
	then func()
}

func (s *shortened) Write(p []byte) (int, error) {
	n := min(len(p), s.left)
	s.left -= n
	s.ResponseWriter.Write(p[:n])
	if n < len(p) {
		http.NewResponseController(s.ResponseWriter).Flush()
		s.then()
		return n, io.ErrShortWrite
	}
	return n, nil
}

func (s *shortened) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func TestTruncatedBodies(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	want := letters(10 * headSize)
	put(t, b, "large", want)
	put(t, b, "small", want[:1000])
	truncate := func(times int) {
		s.intercept(func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
			if times--; times < 0 {
				return false
			}
			pass.ServeHTTP(&shortened{ResponseWriter: w, left: 700, then: func() { panic(http.ErrAbortHandler) }}, r)
			return true
		})
	}
	read := func(times int) (string, error) {
		opened, err := b.Open("large")
		if err != nil {
			return "", err
		}
		defer opened.Close()
		truncate(times)
		defer s.intercept(nil)
		content, err := io.ReadAll(opened)
		return string(content), err
	}
	for times := range mostResumed + 1 {
		if content, err := read(times); err != nil || content != want {
			t.Errorf("broken off %d times: %d bytes, %v", times, len(content), err)
		}
	}
	if content, err := read(1000); err == nil || errors.Is(err, io.EOF) || !strings.HasPrefix(want, content) {
		t.Errorf("always broken off: %d bytes, %v", len(content), err)
	}
	truncate(1000)
	if content, err := fs.ReadFile(b, "small"); err == nil {
		t.Errorf("a small file: %d bytes", len(content))
	}
}

// Tags are compared even if S3 does not know If-Match.
func TestAReplacedObjectThatTheStoreGives(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	want := letters(3 * headSize)
	put(t, b, "a", want)
	opened, err := b.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	put(t, b, "a", strings.Repeat("x", 3*headSize))
	s.intercept(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Header.Get("If-Match") == "" {
			t.Error("the store is not told which object is read")
		}
		return false
	})
	if content, err := io.ReadAll(opened); !errors.Is(err, ErrChanged) || string(content) != want[:headSize] {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

// If an answer is lost, the SDK writes again, and the store refuses the second write.
func TestCreateWhoseAnswerIsLost(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	lost := false
	s.intercept(func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
		if r.Method != http.MethodPut || lost {
			return false
		}
		lost = true
		pass.ServeHTTP(&shortened{ResponseWriter: unanswered{}}, r)
		panic(http.ErrAbortHandler)
	})
	info, err := b.Create(t.Context(), "claim", strings.NewReader("mine"))
	if err != nil || info.Size() != 4 || !lost {
		t.Fatal(info, err, lost)
	}
	if _, err := b.Create(t.Context(), "claim", strings.NewReader("mine")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the next one: %v", err)
	}
}

// unanswered discards an answer.
type unanswered struct{}

func (unanswered) Header() http.Header         { return http.Header{} }
func (unanswered) Write(p []byte) (int, error) { return len(p), nil }
func (unanswered) WriteHeader(int)             {}

func TestLargeFilesAreSentInPartsAndCreatedOnce(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	want := letters(20 << 20)
	info, err := b.Create(t.Context(), "large", strings.NewReader(want))
	if err != nil || info.Size() != int64(len(want)) {
		t.Fatal(info, err)
	}
	if s.requests() == "[head:1 put:1]" {
		t.Error("it was not sent in parts")
	}
	if _, err := b.Create(t.Context(), "large", strings.NewReader(want[1:])); !errors.Is(err, fs.ErrExist) {
		t.Errorf("again: %v", err)
	}
	if content, err := fs.ReadFile(b, "large"); err != nil || string(content) != want {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

// A write is refused beside another one that has not ended.
func TestWritesThatCross(t *testing.T) {
	for _, test := range []struct {
		rule    string
		missing int // how often the store does not have the file yet
		exists  bool
	}{
		{"the file of the other write appears later", 3, true},
		{"the other write fails", 1000, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newStore(t)
			b := openBucket(t, options{url: s.url})
			b.patience.crossing = 100 * time.Millisecond
			put(t, b, "claim", "theirs")
			missing := test.missing
			s.intercept(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				switch {
				case r.Method == http.MethodPut:
					refuse(w, 412, "PreconditionFailed")
				case r.Method == http.MethodHead && missing > 0:
					missing--
					refuse(w, 404, "NoSuchKey")
				default:
					return false
				}
				return true
			})
			_, err := b.Create(t.Context(), "claim", strings.NewReader("ours"))
			if errors.Is(err, fs.ErrExist) != test.exists || !test.exists && (err == nil || !strings.Contains(err.Error(), "beside another write, which failed")) {
				t.Errorf("%v", err)
			}
		})
	}
}

// S3 copies objects of up to 5 GiB only.
func TestFilesTooLargeToCopyAreRewritten(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	b.largestCopy = 4 * headSize
	small, large := letters(4*headSize), letters(8<<20)
	put(t, b, "small", small)
	put(t, b, "large", large)
	s.intercept(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Header.Get("X-Amz-Copy-Source") == "" {
			return false
		}
		refuse(w, 400, "InvalidRequest")
		return true
	})
	if err := b.Copy(t.Context(), "small", "copy"); err == nil || !strings.Contains(err.Error(), "InvalidRequest") {
		t.Errorf("a refused copy of a small file: %v", err)
	}
	if err := b.Copy(t.Context(), "large", "copy"); err != nil {
		t.Fatal(err)
	}
	if content, err := fs.ReadFile(b, "copy"); err != nil || string(content) != large {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

func TestLinksAreGivenByTheStore(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url, prefix: "team"})
	put(t, b, "a b+c/ü.txt", "content")
	link, err := b.SignedURL(t.Context(), "a b+c/ü.txt", 30*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(link, "X-Amz-Expires=604800") {
		t.Errorf("the link lives longer than S3 allows: %s", link)
	}
	for method, status := range map[string]int{http.MethodGet: 200, http.MethodHead: 403, http.MethodPut: 403} {
		r, err := http.NewRequest(method, link, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != status || (status == 200) != (string(body) == "content") {
			t.Errorf("%s: %d %q", method, response.StatusCode, body)
		}
	}
}

// A store inside a company often has a certificate of its own authority.
func TestS3IsTrustedByACertificateAuthorityOfTheEnvironment(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		io.WriteString(w, `<?xml version="1.0"?><ListBucketResult><Name>releases</Name></ListBucketResult>`)
	}))
	defer server.Close()
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(bundle, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", bundle)
	b := openBucket(t, options{url: "s3://releases?region=us-east-1&use_path_style=true&endpoint=" + url.QueryEscape(server.URL)})
	if err := b.Files(t.Context(), ".", func(string, fs.FileInfo) error { return nil }); err != nil {
		t.Error(err)
	}
}

// Without ETags nothing distinguishes one content from another.
func TestAStoreWithoutETagsIsNotServed(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	put(t, b, "dir/a", "a")
	s.intercept(func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
		answer := httptest.NewRecorder()
		pass.ServeHTTP(answer, r)
		body := regexp.MustCompile(`<ETag>[^<]*</ETag>`).ReplaceAll(answer.Body.Bytes(), nil)
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("ETag")
		if r.Method != http.MethodHead {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		}
		w.WriteHeader(answer.Code)
		w.Write(body)
		return true
	})
	_, stat := b.Stat("dir/a")
	_, open := b.Open("dir/a")
	_, readdir := b.ReadDir("dir")
	files := b.Files(t.Context(), ".", func(name string, _ fs.FileInfo) error { return nil })
	for op, err := range map[string]error{"stat": stat, "open": open, "readdir": readdir, "files": files} {
		if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "ETag") {
			t.Errorf("%s: %v", op, err)
		}
	}
	if entries, err := b.ReadDir("."); err != nil || len(entries) != 1 || !entries[0].IsDir() {
		t.Errorf("directories have none: %v, %v", entries, err)
	}
}

// A proxy before a store, or a store at fault, may answer 200 without a listing. Nothing of the
// bucket has gone then.
func TestAnAnswerWithoutAListingIsAnError(t *testing.T) {
	const object = `<Contents><Key>dir/a</Key><Size>1</Size><ETag>"1"</ETag><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>`
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	for _, test := range []struct {
		rule, body string
		refused    bool
	}{
		{"an answer without a body", "", true},
		{"a page in HTML", "<html><body>maintenance</body></html>", true},
		{"an object without its time, with which the driver panics", `<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>dir/a</Key></Contents></ListBucketResult>`, true},
		{"cut off, without a place at which to go on", `<ListBucketResult><IsTruncated>true</IsTruncated>` + object + `</ListBucketResult>`, true},
		{"a list with an object", `<ListBucketResult>` + object + `</ListBucketResult>`, false},
		{"a list without objects", `<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>`, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s.intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
				w.Header().Set("Content-Type", "application/xml")
				if test.body != "" {
					io.WriteString(w, `<?xml version="1.0"?>`+test.body)
				}
				return true
			})
			err := b.Files(t.Context(), ".", func(string, fs.FileInfo) error { return nil })
			if errors.Is(err, errIncomplete) != test.refused || !test.refused && err != nil {
				t.Errorf("all files: %v", err)
			}
			if _, err := b.ReadDir("dir"); test.refused && !errors.Is(err, errIncomplete) {
				t.Errorf("a directory: %v", err)
			}
		})
	}
}

// A store that does not know continuation tokens sends the first page forever.
func TestAListingThatDoesNotGoOnIsAnError(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	put(t, b, "a", "a")
	s.intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.Header().Set("Content-Type", "application/xml")
		io.WriteString(w, `<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>`+
			`<Contents><Key>a</Key><Size>1</Size><ETag>"1"</ETag><LastModified>2026-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>`)
		return true
	})
	visits := 0
	err := b.Files(t.Context(), ".", func(string, fs.FileInfo) error {
		if visits++; visits > 3*pageSize {
			return errors.New("there is no end")
		}
		return nil
	})
	if !errors.Is(err, errSamePage) {
		t.Errorf("%d files, %v", visits, err)
	}
}

// A download by a slow client may take so long that the store breaks it off often.
func TestReadingGoesOnAsLongAsItGetsOn(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	want := letters(20 * headSize)
	put(t, b, "large", want)
	opened, err := b.Open("large")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	s.intercept(func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
		pass.ServeHTTP(&shortened{ResponseWriter: w, left: 2 * headSize, then: func() { panic(http.ErrAbortHandler) }}, r)
		return true
	})
	if content, err := io.ReadAll(opened); err != nil || string(content) != want {
		t.Errorf("%d bytes of %d, %v", len(content), len(want), err)
	}
}

// If a lifecycle rule has archived an object, only that object cannot be read. Other
// refusals may concern any number of objects.
func TestAnArchivedObjectIsNoFailureOfTheStore(t *testing.T) {
	s := newStore(t)
	b := openBucket(t, options{url: s.url})
	put(t, b, "a", "a")
	for _, test := range []struct {
		code   string
		object bool
	}{{"InvalidObjectState", true}, {"AccessDenied", false}} {
		s.fail(http.StatusForbidden, test.code)
		_, err := b.Open("a")
		if errors.Is(err, fs.ErrPermission) != test.object || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", test.code, err)
		}
	}
}
