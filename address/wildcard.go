package address

import "strings"

// A Wildcard is a text in which * matches any run of characters.
type Wildcard string

// Matches reports whether the wildcard matches s. It respects the case.
func (w Wildcard) Matches(s string) bool { return w.match(s, false) }

// MatchesFolded is like Matches, but ignores the case of s. The wildcard must be in
// lower case, and may have letters other than a to z only if it has no *.
func (w Wildcard) MatchesFolded(s string) bool {
	if strings.IndexByte(string(w), '*') < 0 {
		return strings.EqualFold(string(w), s)
	}
	return w.match(s, true)
}

// match lets each star match as few characters as possible, and backtracks to the last
// star only: if the last star cannot be made to fit, no earlier star can. So the time
// is bounded by the product of both lengths.
func (w Wildcard) match(s string, folded bool) bool {
	fold := func(c byte) byte {
		if folded && c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}
	if w == "*" {
		return true
	}
	if w != "" && s != "" && w[len(w)-1] != '*' && w[len(w)-1] != fold(s[len(s)-1]) {
		return false // the usual case for *.example.com
	}
	star, resume := -1, 0 // the last star in w, and the position in s at which to continue if it matches one more character
	i := 0
	for j := 0; j < len(s); {
		switch {
		case i < len(w) && w[i] == '*':
			star, resume = i, j
			i++
		case i < len(w) && w[i] == fold(s[j]):
			i++
			j++
		case star >= 0:
			resume++
			i, j = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(string(w[i:]), "*") == ""
}
