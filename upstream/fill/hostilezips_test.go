package fill_test

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// zipWith is a package that has a further file.
func zipWith(name string) string {
	return indextest.Zip("terraform-provider-demo", "hello", name, "hello")
}

// wrongCRC is a package whose directory tells another checksum of its file.
func wrongCRC() string {
	content := []byte(indextest.Zip("terraform-provider-demo", noise(1000)))
	directory := bytes.LastIndex(content, []byte("PK\x01\x02"))
	content[directory+16] ^= 0xff
	return string(content)
}

// bomb is a package whose directory lists the same bytes many times.
func bomb() string {
	content := indextest.Zip("terraform-provider-demo", strings.Repeat("\x00", 10<<20))
	end := len(content) - 22
	start := int(binary.LittleEndian.Uint32([]byte(content[end+16:])))
	const times = 1000
	out := []byte(content[:start] + strings.Repeat(content[start:end], times) + content[end:])
	e := out[len(out)-22:]
	binary.LittleEndian.PutUint16(e[8:], times)
	binary.LittleEndian.PutUint16(e[10:], times)
	binary.LittleEndian.PutUint32(e[12:], uint32(times*(end-start)))
	return string(out)
}

// zip64Directory is the end of a zip64 that claims so many entries.
func zip64Directory(entries uint64) string {
	var b bytes.Buffer
	for _, v := range []any{
		[]byte("PK\x06\x06"), uint64(44), uint16(45), uint16(45), uint32(0), uint32(0), entries, entries, uint64(0), uint64(0),
		[]byte("PK\x06\x07"), uint32(0), uint64(0), uint32(1),
		[]byte("PK\x05\x06"), uint16(0), uint16(0), uint16(0xffff), uint16(0xffff), uint32(0), uint32(0xffffffff), uint16(0),
	} {
		binary.Write(&b, binary.LittleEndian, v)
	}
	return b.String()
}

func manyEntries() string {
	names := []string{"terraform-provider-demo", "hello"}
	for i := range 50_000 {
		names = append(names, strconv.Itoa(i), "")
	}
	return indextest.Zip(names...)
}
