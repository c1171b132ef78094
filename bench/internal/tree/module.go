package tree

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
)

// A Module is one in a tree.
type Module struct {
	Namespace, Name, System string
	Versions                []string
}

func newModule(number, versions int) Module {
	m := Module{Namespace: fmt.Sprintf("team%02d", number%17), Name: fmt.Sprintf("network%04d", number), System: "aws"}
	for version := range versions {
		m.Versions = append(m.Versions, fmt.Sprintf("1.%d.0", version))
	}
	return m
}

func (m Module) write(root string) error {
	dir := filepath.Join(root, "modules", m.Namespace, m.Name, m.System)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, version := range m.Versions {
		content, err := tinyTar("# " + m.Name + " " + version + "\nvariable \"name\" {}\n")
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, version+".tar.gz"), content); err != nil {
			return err
		}
	}
	return nil
}

// tinyTar is a package with one file of configuration.
func tinyTar(configuration string) ([]byte, error) {
	var b bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	header := &tar.Header{Name: "main.tf", Mode: 0o644, Size: int64(len(configuration)), ModTime: written}
	if err := archive.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := archive.Write([]byte(configuration)); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err = compressed.Close()
	return b.Bytes(), err
}
