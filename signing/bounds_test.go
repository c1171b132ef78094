package signing

import (
	"bytes"
	"crypto"
	"crypto/dsa" //lint:ignore SA1019 old keys are of this kind
	"crypto/rand"
	"crypto/rsa"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// keyPacket returns the packet of a key with numbers of the given sizes.
func keyPacket(tag, algorithm byte, bits ...int) *packet.OpaquePacket {
	contents := []byte{4, 0x60, 0, 0, 0, algorithm}
	for _, n := range bits {
		number := make([]byte, 2+(n+7)/8)
		number[0], number[1] = byte(n>>8), byte(n)
		for i := range number[2:] {
			number[2+i] = 0xff
		}
		if n%8 != 0 {
			number[2] = 1<<(n%8) - 1
		}
		contents = append(contents, number...)
	}
	return &packet.OpaquePacket{Tag: tag, Contents: contents}
}

// armoredPackets returns packets in the form of a keys file.
func armoredPackets(t testing.TB, packets ...*packet.OpaquePacket) []byte {
	t.Helper()
	var raw bytes.Buffer
	for _, p := range packets {
		if err := p.Serialize(&raw); err != nil {
			t.Fatal(err)
		}
	}
	text, err := enarmor(openpgp.PublicKeyType, raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// packetsOf returns the packets of a key.
func packetsOf(t testing.TB, key *openpgp.Entity) []*packet.OpaquePacket {
	t.Helper()
	keys, err := blocks(armored(t, key))[0].keys()
	if err != nil || len(keys) != 1 {
		t.Fatal(err)
	}
	return keys[0]
}

func TestNumbersOfAnySizeAreRefused(t *testing.T) {
	for _, test := range []struct {
		rule      string
		algorithm byte
		bits      []int
		says      string // empty: allowed
	}{
		{"RSA as large as allowed", algorithmRSA, []int{16_384, 17}, ""},
		{"RSA larger than that", algorithmRSA, []int{16_385, 17}, "RSA modulus has 16385 bits"},
		{"RSA that only signs", algorithmRSASignOnly, []int{65_535, 17}, "RSA modulus"},
		{"RSA that only encrypts", algorithmRSAEncryptOnly, []int{65_535, 17}, "RSA modulus"},
		{"RSA with a large exponent", algorithmRSA, []int{2048, 18}, "RSA exponent has 18 bits"},
		{"DSA as large as allowed", algorithmDSA, []int{3072, 256, 3072, 3072}, ""},
		{"DSA with a large p", algorithmDSA, []int{65_535, 256, 3072, 3072}, "DSA p has 65535 bits, more than the 3072"},
		{"DSA with a large q", algorithmDSA, []int{3072, 257, 3072, 3072}, "DSA q has 257 bits"},
		{"DSA with a large g", algorithmDSA, []int{3072, 256, 3073, 3072}, "DSA g"},
		{"DSA with a large y", algorithmDSA, []int{3072, 256, 3072, 3073}, "DSA y"},
		{"Elgamal as large as allowed", algorithmElgamal, []int{16_384, 3, 16_384}, ""},
		{"Elgamal with a large p", algorithmElgamal, []int{16_385, 3, 2048}, "Elgamal p"},
		{"Elgamal that signs", algorithmElgamalBoth, []int{16_385, 3, 2048}, "Elgamal p"},
		{"a number that is missing", algorithmDSA, []int{3072, 256, 3072}, "cut off"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			for _, tag := range []byte{tagPublicKey, tagPublicSubkey} {
				good := packetsOf(t, newKey(t, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA}))
				packets := append(good, keyPacket(tag, test.algorithm, test.bits...))
				if tag == tagPublicKey {
					packets = packets[len(packets)-1:]
				}
				err := checkBounds(packets)
				if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
					t.Errorf("packet %d: %v", tag, err)
				}
				// A bad key is refused before the library looks at it.
				ring, problems := ReadKeyring(armoredPackets(t, packets...))
				if test.says != "" && (len(ring.Keys()) > 0 || len(problems) != 1 || !strings.Contains(problems[0].Error(), test.says)) {
					t.Errorf("packet %d, in a keys file: %v", tag, problems)
				}
			}
		})
	}
	cut := keyPacket(tagPublicKey, algorithmRSA, 2048, 17)
	cut.Contents = cut.Contents[:100]
	if err := checkBounds([]*packet.OpaquePacket{cut}); err == nil {
		t.Error("a key that ends in a number is not refused")
	}
}

// manyPrimes is an RSA key of many small primes, which is generated quickly whatever
// its size.
type manyPrimes struct {
	public rsa.PublicKey
	primes []*big.Int
}

func newManyPrimes(t *testing.T, count, bits int) *manyPrimes {
	k := &manyPrimes{public: rsa.PublicKey{N: big.NewInt(1), E: 65_537}}
	for len(k.primes) < count {
		p, err := rand.Prime(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		if k.inverse(p) != nil {
			k.primes = append(k.primes, p)
			k.public.N.Mul(k.public.N, p)
		}
	}
	return k
}

func (k *manyPrimes) inverse(p *big.Int) *big.Int {
	return new(big.Int).ModInverse(big.NewInt(int64(k.public.E)), new(big.Int).Sub(p, big.NewInt(1)))
}

func (k *manyPrimes) Public() crypto.PublicKey { return &k.public }

// Sign signs as PKCS #1 version 1.5 does, modulo each prime.
func (k *manyPrimes) Sign(_ io.Reader, digest []byte, _ crypto.SignerOpts) ([]byte, error) {
	prefix := []byte("\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20") // SHA-256
	size := (k.public.N.BitLen() + 7) / 8
	padded := append([]byte{0, 1}, bytes.Repeat([]byte{0xff}, size-3-len(prefix)-len(digest))...)
	padded = append(append(append(padded, 0), prefix...), digest...)
	message, sum := new(big.Int).SetBytes(padded), new(big.Int)
	for _, p := range k.primes {
		rest := new(big.Int).Div(k.public.N, p)
		part := new(big.Int).Exp(new(big.Int).Mod(message, p), k.inverse(p), p)
		part.Mul(part, new(big.Int).ModInverse(rest, p)).Mod(part, p)
		sum.Add(sum, part.Mul(part, rest))
	}
	return sum.Mod(sum, k.public.N).FillBytes(make([]byte, size)), nil
}

// A key of 16,384 bits can be read, and its signatures can be verified.
func TestTheLargestKeyIsUsable(t *testing.T) {
	now := time.Now()
	signer := newManyPrimes(t, 32, 512)
	private := &packet.PrivateKey{PublicKey: *packet.NewRSAPublicKey(now, &signer.public), PrivateKey: signer}
	key := &openpgp.Entity{PrimaryKey: &private.PublicKey, PrivateKey: private, Identities: make(map[string]*openpgp.Identity)}
	config := &packet.Config{DefaultHash: crypto.SHA256, Time: func() time.Time { return now }}
	if err := key.AddUserId("large", "", "", config); err != nil {
		t.Fatal(err)
	}
	if bits, err := private.BitLength(); err != nil || bits < 16_000 {
		t.Fatalf("the key has %d bits: %v", bits, err)
	}
	ring, problems := ReadKeyring(armored(t, key))
	if len(ring.Keys()) != 1 || len(problems) > 0 {
		t.Fatal(problems)
	}
	var signature bytes.Buffer
	if err := openpgp.DetachSign(&signature, key, strings.NewReader("document"), config); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Verify([]byte("document"), signature.Bytes()); err != nil {
		t.Error(err)
	}
}

func TestKeysWithoutNumberAreRefused(t *testing.T) {
	var file []byte
	for i := range MaxKeys + 1 {
		file = append(file, armored(t, newKey(t, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA}))...)
		if ring, problems := ReadKeyring(file); i == MaxKeys-1 && (len(ring.Keys()) != MaxKeys || len(problems) > 0) {
			t.Errorf("of %d keys %d are used: %v", MaxKeys, len(ring.Keys()), problems)
		}
	}
	if ring, problems := ReadKeyring(file); len(ring.Keys()) > 0 || len(problems) != 1 || !strings.Contains(problems[0].Error(), "more than 50 keys") {
		t.Errorf("of one more %d are used: %v", len(ring.Keys()), problems)
	}
	one := packetsOf(t, newKey(t, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA}))
	var many []*packet.OpaquePacket
	for range MaxKeys + 1 {
		many = append(many, one...)
	}
	if _, problems := ReadKeyring(armoredPackets(t, many...)); len(problems) != 1 || !strings.Contains(problems[0].Error(), "more than 50 keys") {
		t.Errorf("in one block: %v", problems)
	}
	subkey := one[len(one)-2:]
	for range maxSubkeys {
		one = append(one, subkey...)
	}
	if _, problems := ReadKeyring(armoredPackets(t, one...)); len(problems) != 1 || !strings.Contains(problems[0].Error(), "more than 50 subkeys") {
		t.Errorf("subkeys: %v", problems)
	}
}

// Each signature of a key on itself is verified when the key is read.
func TestSignaturesWithoutNumberAreRefused(t *testing.T) {
	key := newKey(t, &packet.Config{Algorithm: packet.PubKeyAlgoECDSA, Curve: packet.CurveNistP256})
	for rule, repeated := range map[string]int{"on a user ID": 2, "on a subkey": 4} {
		t.Run(rule, func(t *testing.T) {
			packets := packetsOf(t, key)
			if packets[repeated].Tag != tagSignature {
				t.Fatalf("the key has packet %d there", packets[repeated].Tag)
			}
			repeat := func(n int) []byte {
				many := append([]*packet.OpaquePacket(nil), packets[:repeated]...)
				for range n {
					many = append(many, packets[repeated])
				}
				return armoredPackets(t, append(many, packets[repeated+1:]...)...)
			}
			if ring, problems := ReadKeyring(repeat(10)); len(ring.Keys()) != 1 || len(problems) > 0 {
				t.Errorf("ten of them: %v", problems)
			}
			if ring, problems := ReadKeyring(repeat(1000)); len(ring.Keys()) > 0 || len(problems) != 1 || !strings.Contains(problems[0].Error(), "too many signatures") {
				t.Errorf("a thousand of them: %v", problems)
			}
			// The bound is for all keys of a document together.
			file := append(repeat(30), repeat(31)...)
			if ring, problems := ReadKeyring(append(file, repeat(32)...)); len(ring.Keys()) == 3 || len(problems) == 0 {
				t.Errorf("in three keys: %v", problems)
			}
		})
	}
}

// A key that passes does not keep the library computing for long.
func FuzzCheckBounds(f *testing.F) {
	for _, p := range []*packet.OpaquePacket{
		keyPacket(tagPublicKey, algorithmRSA, 2048, 17), keyPacket(tagPublicKey, algorithmDSA, 3072, 256, 3072, 3072),
		keyPacket(tagPublicKey, algorithmDSA, 65_535, 256, 3072, 3072), keyPacket(tagPublicKey, algorithmElgamal, 2048, 3, 2048),
	} {
		f.Add(p.Contents)
	}
	f.Fuzz(func(t *testing.T, contents []byte) {
		p := &packet.OpaquePacket{Tag: tagPublicKey, Contents: contents}
		if checkBounds([]*packet.OpaquePacket{p}) != nil {
			return
		}
		parsed, err := p.Parse()
		key, ok := parsed.(*packet.PublicKey)
		if err != nil || !ok {
			return
		}
		switch k := key.PublicKey.(type) {
		case *rsa.PublicKey:
			if k.N.BitLen() > maxModulus || k.E >= 1<<24 {
				t.Errorf("an RSA key of %d bits, exponent %d", k.N.BitLen(), k.E)
			}
		case *dsa.PublicKey:
			if k.P.BitLen() > maxPrime || k.Q.BitLen() > maxSubgroup || k.G.BitLen() > maxPrime || k.Y.BitLen() > maxPrime {
				t.Errorf("a DSA key of %d bits", k.P.BitLen())
			}
		}
	})
}
