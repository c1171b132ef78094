package signing

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// MaxKeys is the maximum number of keys in a document.
const MaxKeys = 50

// Keys come from origins, and the library verifies all signatures of a key on itself
// while it reads the key. That takes minutes with numbers of any size, or with a
// thousand signatures. These bounds are above what tools make. They are applied to the
// undecoded packets, before the library computes anything.
const (
	maxModulus       = 16_384 // bits of n of RSA, and of p of Elgamal
	maxExponent      = 17     // bits of e of RSA: 65537 or smaller
	maxPrime         = 3072   // bits of p of DSA
	maxSubgroup      = 256    // bits of q of DSA
	maxSubkeys       = 50
	maxVerifyingWork = 1 << 16 // of a document, see verifyingWork: about two seconds
)

// OpenPGP's public-key algorithms that compute with numbers of any size, RFC 9580
// section 9.1. The points of all other algorithms have the size of their curve.
const (
	algorithmRSA            = 1
	algorithmRSAEncryptOnly = 2
	algorithmRSASignOnly    = 3
	algorithmElgamal        = 16
	algorithmDSA            = 17
	algorithmECDSA          = 19
	algorithmElgamalBoth    = 20 // no longer in use
)

// errKeyCutOff reports a key that ends in the middle of a number.
var errKeyCutOff = errors.New("it is cut off: export it again")

// checkBounds refuses a key that would take too long to read. packets are the packet of
// a primary key and all packets up to the next.
func checkBounds(packets []*packet.OpaquePacket) error {
	subkeys := 0
	for _, p := range packets {
		if p.Tag == tagPublicSubkey {
			subkeys++
		}
		if p.Tag != tagPublicKey && p.Tag != tagPublicSubkey {
			continue
		}
		if err := checkNumbers(p.Contents); err != nil {
			return err
		}
	}
	if subkeys > maxSubkeys {
		return fmt.Errorf("it has more than %d subkeys: export it with gpg --export-options export-minimal, and only those that sign", maxSubkeys)
	}
	return nil
}

// checkNumbers limits the numbers in the packet of a key.
func checkNumbers(contents []byte) error {
	algorithm, numbers := publicNumbers(contents)
	var names []string
	var bounds []int
	switch algorithm {
	case algorithmRSA, algorithmRSAEncryptOnly, algorithmRSASignOnly:
		names, bounds = []string{"RSA modulus", "RSA exponent"}, []int{maxModulus, maxExponent}
	case algorithmElgamal, algorithmElgamalBoth:
		names, bounds = []string{"Elgamal p", "Elgamal g", "Elgamal y"}, []int{maxModulus, maxModulus, maxModulus}
	case algorithmDSA:
		names, bounds = []string{"DSA p", "DSA q", "DSA g", "DSA y"}, []int{maxPrime, maxSubgroup, maxPrime, maxPrime}
	}
	for i, bound := range bounds {
		if len(numbers) < 2 {
			return errKeyCutOff
		}
		bits := int(binary.BigEndian.Uint16(numbers))
		if bits > bound {
			return fmt.Errorf("its %s has %d bits, more than the %d that are allowed: use another key", names[i], bits, bound)
		}
		length := 2 + (bits+7)/8
		if len(numbers) < length {
			return errKeyCutOff
		}
		numbers = numbers[length:]
	}
	return nil
}

// publicNumbers splits the packet of a key into its algorithm and the numbers that
// follow. The algorithm is zero if the packet has none.
func publicNumbers(contents []byte) (algorithm byte, numbers []byte) {
	header := 6 // version, time of creation, algorithm
	if len(contents) > 0 && contents[0] >= 5 {
		header += 4 // the size of the numbers
	}
	if len(contents) < header {
		return 0, nil
	}
	return contents[5], contents[header:]
}

// errTooMuchWork reports a key that signed itself hundreds of times.
var errTooMuchWork = errors.New("it, with those before it, has too many signatures on itself: export it with gpg --export-options export-minimal")

// verifyingWork estimates the time to verify a key's signatures on itself. The unit is
// the time for one signature by an RSA key of 1024 bits. The library verifies all
// signatures that follow a sub-key, and other signatures only if they name the primary
// key.
func verifyingWork(packets []*packet.OpaquePacket) int {
	parsed, err := packets[0].Parse()
	primary, ok := parsed.(*packet.PublicKey)
	if err != nil || !ok {
		return 0 // the library stops there too
	}
	own, sub, work := signatureWork(packets[0].Contents), 0, 0
	for _, p := range packets[1:] {
		switch p.Tag {
		case tagPublicSubkey:
			sub = signatureWork(p.Contents)
		case tagSignature:
			if sub > 0 {
				work += own + sub // a signature by each
				continue
			}
			parsed, err := p.Parse()
			if signature, ok := parsed.(*packet.Signature); err == nil && ok && signature.CheckKeyIdOrFingerprint(primary) {
				work += own
			}
		}
	}
	return work
}

// signatureWork estimates the time to verify one signature by a key. The factors are
// measured.
func signatureWork(contents []byte) int {
	algorithm, numbers := publicNumbers(contents)
	if len(numbers) < 2 {
		return 1
	}
	kilobits := (int(binary.BigEndian.Uint16(numbers)) + 1023) / 1024
	switch algorithm {
	case algorithmRSA, algorithmRSAEncryptOnly, algorithmRSASignOnly:
		return 1 + kilobits*kilobits
	case algorithmDSA:
		return 1 + 14*kilobits*kilobits
	case algorithmECDSA:
		return 900 // for the slowest curve
	}
	return 20
}
