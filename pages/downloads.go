package pages

import counts "github.com/caddy-terraform/caddy-terraform-registry/usage"

// downloads are how often versions were downloaded, and under "" all; nil: that is not known.
type downloads map[string]counts.Summary

// facts returns how often a version was downloaded, beside all versions.
func (d downloads) facts(version string) []fact {
	if d == nil {
		return nil
	}
	return []fact{
		{Term: "Downloads", Text: d.summary(version)},
		{Term: "All versions", Text: d.summary("")},
	}
}

// summary returns how often and when last a version was downloaded; empty if that is not known.
func (d downloads) summary(version string) string {
	if d == nil {
		return ""
	}
	return d[version].String()
}
