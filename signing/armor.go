package signing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// maxSize limits the size of a keys file, a key file or a signature. Real files have a
// few kilobytes.
const maxSize = 1 << 20

// OpenPGP packet tags, RFC 9580 section 5. The library does not export its own
// constants.
const (
	tagSignature     = 2
	tagPrivateKey    = 5
	tagPublicKey     = 6
	tagPrivateSubkey = 7
	tagPublicSubkey  = 14
)

// errCutOff reports an armor block that does not end.
var errCutOff = errors.New("it is cut off, its END line is missing: copy the whole block")

// A block is an ASCII armor block of a file.
type block struct {
	label string // the text after BEGIN: "PGP PUBLIC KEY BLOCK"
	text  []byte // from the BEGIN line to the END line
	ended bool
}

// blocks finds the armor blocks of a file and skips the text around them. Files that have been
// put together may have the byte order mark of each, and no line break where one ended without it.
func blocks(file []byte) []block {
	file = bytes.ReplaceAll(file, []byte("\ufeff"), nil)
	file = bytes.ReplaceAll(file, []byte("----------BEGIN "), []byte("-----\n-----BEGIN "))
	var found []block
	open := false
	for line := range bytes.Lines(file) {
		trimmed := string(bytes.TrimSpace(line))
		rest, begins := strings.CutPrefix(trimmed, "-----BEGIN ")
		if label, ok := strings.CutSuffix(rest, "-----"); begins && ok {
			found = append(found, block{label: label})
			open = true
		}
		if !open {
			continue
		}
		last := &found[len(found)-1]
		last.text = append(last.text, line...)
		if strings.HasPrefix(trimmed, "-----END ") {
			last.ended, open = true, false
		}
	}
	return found
}

// keys decodes the block into keys. A key is the packet of a primary key and all
// packets up to the next primary key.
func (b block) keys() ([][]*packet.OpaquePacket, error) {
	if !b.ended {
		return nil, errCutOff
	}
	decoded, err := armor.Decode(bytes.NewReader(b.text))
	if err != nil {
		return nil, fmt.Errorf("its armor is damaged, export it again: %w", err)
	}
	var keys [][]*packet.OpaquePacket
	packets := packet.NewOpaqueReader(decoded.Body)
	for {
		next, err := packets.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("its armor is damaged, export it again: %w", err)
		}
		if next.Tag == tagPublicKey || next.Tag == tagPrivateKey {
			keys = append(keys, nil)
		}
		if len(keys) > 0 {
			keys[len(keys)-1] = append(keys[len(keys)-1], next)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key in it: export it again")
	}
	return keys, nil
}

// enarmor makes one armor block of packets. The text depends on the arguments alone.
func enarmor(label string, packets []byte) ([]byte, error) {
	var text bytes.Buffer
	body, err := armor.Encode(&text, label, nil)
	if err != nil {
		return nil, err
	}
	if _, err := body.Write(packets); err != nil {
		return nil, err
	}
	if err := body.Close(); err != nil {
		return nil, err
	}
	text.WriteByte('\n')
	return text.Bytes(), nil
}

// noBlock says what to do about a file without any armor block. This happens with
// exports without --armor, and with exports that a Windows shell has redirected into
// UTF-16.
func noBlock(want string) error {
	option := "--export"
	if want == openpgp.PrivateKeyType {
		option = "--export-secret-keys"
	}
	return fmt.Errorf("it holds no %s in ASCII armor: write it with gpg --armor --output FILE %s KEY", want, option)
}
