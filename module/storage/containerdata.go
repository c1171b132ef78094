package storage

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/certmagic"
)

// WarnOfLostData logs which data is lost with the container: Caddy's storage, or transparency
// logs in these folders. A log can be lost alone: then its newest checkpoint, which is in the
// storage, has entries that its folder lacks.
func WarnOfLostData(logger *slog.Logger, s certmagic.Storage, logs []string) {
	warnOfLostData(logger, s, logs, lostWithContainer)
}

func warnOfLostData(logger *slog.Logger, s certmagic.Storage, logs []string, isLost func(folder string) bool) {
	if files, ok := s.(*certmagic.FileStorage); ok && isLost(files.Path) {
		logger.Warn("the container has no volume for Caddy's data, and loses certificates and the signing key with it: mount one", "folder", files.Path)
	}
	for _, folder := range logs {
		if isLost(folder) {
			logger.Warn("the container has no volume for the transparency log, and loses it: mount one, and name its folder in tlog", "folder", folder)
		}
	}
}

// lostWithContainer reports whether the server is a container without a volume for a folder, so
// that the data in it is not kept. It does so only if that is certain: a folder that is lost in
// another way looks like any other.
func lostWithContainer(folder string) bool {
	if !inContainer() {
		return false
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false // not Linux
	}
	defer mounts.Close()
	return isLostWithContainer(mounts, folder)
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

// fleetingVolume matches the folders of volumes that the next container does not get: volumes
// without a name, which Docker, Podman, and containerd in Kubernetes make for an image, and
// an emptyDir, which ends with its pod.
var fleetingVolume = regexp.MustCompile(`/volumes/kubernetes\.io~empty-dir/|/volumes/[0-9a-f]{64}/_data$|/io\.containerd\.grpc\.v1\.cri/containers/[^/]+/volumes/[^/]+$`)

// isLostWithContainer reports whether a folder of a container is in the container's own
// layer, or in a volume that is made for it or for its pod alone. mounts has the content of
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
			lost = point == "/" && typ[0] == "overlay" || fleetingVolume.MatchString(root)
		}
	}
	return lost
}
