package storage

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/certmagic"
)

// LostWithContainer returns the folder of a storage if the server is a container without a volume for it,
// so that the data in it is not kept. lost is true only if that is certain: a folder that is lost in
// another way looks like any other.
func LostWithContainer(s certmagic.Storage) (folder string, lost bool) {
	files, ok := s.(*certmagic.FileStorage)
	if !ok || !inContainer() {
		return "", false
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", false // not Linux
	}
	defer mounts.Close()
	return files.Path, isLostWithContainer(mounts, files.Path)
}

// inContainer reports whether this is a container of Docker, Podman or Kubernetes.
// Elsewhere a root file system of the same type may be kept.
func inContainer() bool {
	_, kubernetes := os.LookupEnv("KUBERNETES_SERVICE_HOST")
	return kubernetes || slices.ContainsFunc([]string{"/.dockerenv", "/run/.containerenv"}, func(name string) bool {
		_, err := os.Stat(name)
		return err == nil
	})
}

// unnamedVolume matches the folders of volumes that have no name, which engines make
// for an image: Docker, Podman, and containerd in Kubernetes. The next container gets a
// new volume.
var unnamedVolume = regexp.MustCompile(`/volumes/[0-9a-f]{64}/_data$|/io\.containerd\.grpc\.v1\.cri/containers/[^/]+/volumes/[^/]+$`)

// isLostWithContainer reports whether a folder of a container is in the container's own
// layer, or in a volume that is made for it alone. mounts has the content of
// /proc/self/mountinfo.
func isLostWithContainer(mounts io.Reader, folder string) bool {
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	longest, lost := "", false
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		before, after, found := strings.Cut(lines.Text(), " - ")
		fields, typ := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(typ) == 0 {
			continue
		}
		root, point := fields[3], fields[4]
		within := folder == point || strings.HasPrefix(folder, strings.TrimSuffix(point, "/")+"/")
		if within && len(point) >= len(longest) { // a later mount hides earlier ones at the same place
			longest = point
			lost = point == "/" && typ[0] == "overlay" || unnamedVolume.MatchString(root)
		}
	}
	return lost
}
