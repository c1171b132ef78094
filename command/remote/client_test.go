package remote

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
)

// The printed part of an answer is short and has no control characters.
func FuzzReasonsOf(f *testing.F) {
	f.Add(422, []byte(`{"errors":["rename it"]}`))
	f.Add(422, []byte(`{"errors":[{"message":"rename it"},7,null]}`))
	f.Add(307, []byte("<html>"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		q := httptest.NewRequest(http.MethodPut, "/", nil)
		reasons := reasonsOf(&http.Response{StatusCode: status, Header: http.Header{"Location": {"https://a.example/"}}, Request: q}, body)
		if len(reasons) == 0 || len(reasons) > maxReasons {
			t.Errorf("there are %d reasons", len(reasons))
		}
		for _, reason := range reasons {
			if strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsPrint(r) }) || len(reason) > 8*maxReason {
				t.Errorf("%q", reason)
			}
		}
	})
}
