package archive

import (
	"encoding/binary"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// What reading a module's package told besides its digests is kept in its digest as
// bytes, since most of it is rarely needed: facts, which are an archive's
// moduleFacts or a folder's executables, and the encoded moduledoc.Summary.

// encodeModuleContent returns facts and a summary as one.
func encodeModuleContent(facts []byte, summary moduledoc.Summary) []byte {
	encoded := summary.Encode()
	b := make([]byte, 0, binary.MaxVarintLen32+len(facts)+len(encoded))
	b = binary.AppendUvarint(b, uint64(len(facts)))
	b = append(b, facts...)
	return append(b, encoded...)
}

// splitModuleContent returns what encodeModuleContent was given, nothing of what is
// no such content.
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
