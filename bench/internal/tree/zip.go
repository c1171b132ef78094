package tree

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
)

// tinyZip is a package whose binary is a line of text.
func tinyZip(binary, text string) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(header(binary, zip.Store))
	if err != nil {
		return nil, err
	}
	if _, err := w.Write([]byte(text + "\n")); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

func header(binary string, method uint16) *zip.FileHeader {
	h := &zip.FileHeader{Name: binary, Method: method, Modified: written}
	h.SetMode(0o755)
	return h
}

// Stage writes a tiny package of p for linux_amd64 into dir, under a name that
// says that it is not there yet, and returns the file and the name it is to be
// given. The folder of the file is made, too.
func (p Provider) Stage(dir, version string) (file, name string, err error) {
	name = p.PackageName(version, linux)
	content, err := tinyZip(p.Binary(version), name)
	if err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	file = filepath.Join(dir, "."+name+".tmp")
	return file, filepath.Join(dir, name), os.WriteFile(file, content, 0o644)
}
