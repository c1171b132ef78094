package module

import "testing"

func TestUnsignedText(t *testing.T) {
	for _, test := range []struct{ rule, text, want string }{
		{"a link", "/v1/a.zip?exp=1&sig=abc-_Z", "/v1/a.zip?exp=1&sig=REDACTED"},
		{"its parameters in another order", "/v1/a.zip?archive=zip&sig=abc&terraform-get=1", "/v1/a.zip?archive=zip&sig=REDACTED&terraform-get=1"},
		{"one that was broken", "/v1/a.zip?sig=abc%3D.)", "/v1/a.zip?sig=REDACTED"},
		{"two signatures", "/v1/a.zip?sig=abc&sig=def", "/v1/a.zip?sig=REDACTED&sig=REDACTED"},
		{"none", "/v1/a.zip?sig=&exp=1", "/v1/a.zip?sig=REDACTED&exp=1"},
		{"a whole URL", "https://r.example.com/v1/a.zip?exp=1&sig=abc", "https://r.example.com/v1/a.zip?exp=1&sig=REDACTED"},
		{"a URL in a header", `<https://r.example.com/a?sig=abc>; rel="x"`, `<https://r.example.com/a?sig=REDACTED>; rel="x"`},
		{"a URL in a query", "/login?rd=%2Fv1%2Fa.zip%3Fexp%3D1%26sig%3Dabc&x=1", "/login?rd=%2Fv1%2Fa.zip%3Fexp%3D1%26sig%3DREDACTED&x=1"},
		{"parameters with a name like it", "/v1/a.zip?design=a&sign=b&sigs=c", "/v1/a.zip?design=a&sign=b&sigs=c"},
		{"no query", "/v1/sig=abc.zip", "/v1/sig=abc.zip"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := unsignedText(test.text); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
