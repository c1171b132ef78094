// Package accept reads the header fields by which clients say what they take (RFC 9110 §12.5).
package accept

import (
	"mime"
	"strconv"
	"strings"
)

// maxRanges is how many ranges of a header count. No client sends as many.
const maxRanges = 64

// A mediaRange is an element of an Accept field, with its weight.
type mediaRange struct {
	name       string // such as "text/html" or "text/*"
	parameters map[string]string
	weight     float64
}

// ranges reads a field. It skips what it cannot read.
func ranges(header string) (list []mediaRange) {
	for part := range strings.SplitSeq(header, ",") {
		if len(list) == maxRanges {
			break
		}
		name, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		r := mediaRange{name, parameters, 1}
		if q, ok := parameters["q"]; ok {
			if r.weight, err = strconv.ParseFloat(q, 64); err != nil || !(r.weight >= 0 && r.weight <= 1) {
				continue
			}
			delete(parameters, "q")
		}
		list = append(list, r)
	}
	return list
}

// Prefers reports whether an Accept field gives one media type more weight than another.
func Prefers(header, wanted, other string) bool {
	if header == "" {
		return false
	}
	list := ranges(header)
	return quality(list, wanted) > quality(list, other)
}

// quality returns the weight of a media type: of the most specific range that has it.
func quality(list []mediaRange, kind string) (weight float64) {
	kind, has, err := mime.ParseMediaType(kind)
	if err != nil {
		return 0
	}
	class, _, _ := strings.Cut(kind, "/")
	closest := 0
	for _, r := range list {
		how := 0
		switch r.name {
		case kind:
			how = 3 + len(r.parameters)
		case class + "/*":
			how = 2
		case "*/*":
			how = 1
		}
		for name, value := range r.parameters {
			if !strings.EqualFold(has[name], value) {
				how = 0
			}
		}
		if how > closest {
			closest, weight = how, r.weight
		}
	}
	return weight
}

// Gzip reports whether an Accept-Encoding field names gzip. Clients that only allow everything
// get what is not compressed. It is asked for each page, and so takes no memory.
func Gzip(header string) bool {
	for coding := range strings.SplitSeq(header, ",") {
		name, weight, weighted := strings.Cut(coding, ";")
		if strings.TrimSpace(name) != "gzip" {
			continue
		}
		weight = strings.ReplaceAll(weight, " ", "")
		return !weighted || !strings.HasPrefix(weight, "q=0") || strings.Trim(weight, "q=0.") != ""
	}
	return false
}
