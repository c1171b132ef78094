package address

import "strings"

// A Wildcard is a text in which * stands for any run of characters.
type Wildcard string

// Matches reports whether the wildcard covers s, in the same case.
func (w Wildcard) Matches(s string) bool { return w.match(s, false) }

// MatchesFolded is Matches regardless of the case of s. The wildcard must be in
// lower case, and may have letters other than a to z only if it has no *.
func (w Wildcard) MatchesFolded(s string) bool {
	if strings.IndexByte(string(w), '*') < 0 {
		return strings.EqualFold(string(w), s)
	}
	return w.match(s, true)
}

// match gives each star as few characters as possible and backtracks to the last
// star only: if that one cannot be made to fit, no earlier one can. So the time is
// bounded by the product of both lengths.
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
	star, resume := -1, 0 // the last star in w, and where in s to go on when it takes one more
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
