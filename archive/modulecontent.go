package archive

import (
	"encoding/binary"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// The digest of a module's package keeps further results of reading it as bytes, since most
// of them are rarely needed: the facts, which are an archive's moduleFacts or a folder's
// executables, and the encoded moduledoc.Summary.

// encodeModuleContent encodes facts and a summary together.
func encodeModuleContent(facts []byte, summary moduledoc.Summary) []byte {
	encoded := summary.Encode()
	b := make([]byte, 0, binary.MaxVarintLen32+len(facts)+len(encoded))
	b = binary.AppendUvarint(b, uint64(len(facts)))
	b = append(b, facts...)
	return append(b, encoded...)
}

// splitModuleContent returns the arguments of encodeModuleContent, or nil for other content.
func splitModuleContent(b []byte) (facts, summary []byte) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, nil
	}
	return b[n:][:length:length], b[n+int(length):]
}

// SummaryIn returns the encoded moduledoc.Summary in the content of a module's digest.
func SummaryIn(content []byte) []byte {
	_, summary := splitModuleContent(content)
	return summary
}
