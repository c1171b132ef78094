package storage

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"
)

// The warning about lost data is logged only if the loss is certain.
func TestDataThatGoesWithTheContainer(t *testing.T) {
	const (
		layer = "1022 888 0:66 / / rw,relatime master:288 - overlay overlay rw,lowerdir=/a,upperdir=/b\n"
		disk  = "29 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
		hex   = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	)
	volume := func(root string) string {
		return "1030 1022 8:1 " + root + " /data rw,relatime master:1 - ext4 /dev/sda1 rw\n"
	}
	for _, test := range []struct {
		rule, mounts string
		lost         bool
	}{
		{"no volume", layer, true},
		{"a volume for something else", layer + strings.Replace(volume("/srv"), "/data", "/data2", 1), true},
		{"a volume that Docker makes for the image", layer + volume("/var/lib/docker/volumes/"+hex+"/_data"), true},
		{"one that containerd makes", layer + volume("/var/lib/containerd/io.containerd.grpc.v1.cri/containers/"+hex+"/volumes/"+hex), true},
		{"a volume with a name", layer + volume("/var/lib/docker/volumes/registry/_data"), false},
		{"a folder of the machine", layer + volume("/srv/caddy"), false},
		{"one that ends with the pod", layer + volume("/var/lib/kubelet/pods/x/volumes/kubernetes.io~empty-dir/scratch/data"), true},
		{"a volume of Kubernetes", layer + volume("/var/lib/kubelet/pods/x/volumes/kubernetes.io~csi/data/mount"), false},
		{"a volume over an unnamed one", layer + volume("/var/lib/docker/volumes/"+hex+"/_data") + volume("/srv/caddy"), false},
		{"another root file system", disk, false},
		{"mounts that cannot be read", "nonsense\n1 2 3\n", false},
	} {
		if got := isLostWithContainer(strings.NewReader(test.mounts), "/data/caddy"); got != test.lost {
			t.Errorf("%s: it is lost: %t", test.rule, got)
		}
	}
}

// A log that is lost alone stays behind, so it is named, too.
func TestWarningsOfLostData(t *testing.T) {
	for _, test := range []struct {
		rule    string
		storage certmagic.Storage
		lost    []string
		says    []string
	}{
		{"nothing", &certmagic.FileStorage{Path: "/storage"}, nil, nil},
		{"the storage", &certmagic.FileStorage{Path: "/storage"}, []string{"/storage"}, []string{"Caddy's data", "folder=/storage"}},
		{"a log beside a storage that is kept", &certmagic.FileStorage{Path: "/storage"}, []string{"/data/log"}, []string{"the transparency log", "folder=/data/log"}},
		{"a log beside a storage elsewhere", nil, []string{"/data/log"}, []string{"the transparency log", "folder=/data/log"}},
	} {
		var said strings.Builder
		warnOfLostData(slog.New(slog.NewTextHandler(&said, nil)), test.storage, []string{"/srv/log", "/data/log"},
			func(folder string) bool { return slices.Contains(test.lost, folder) })
		if strings.Count(said.String(), "\n") != len(test.says)/2 {
			t.Errorf("%s: it says %q", test.rule, said.String())
		}
		for _, text := range test.says {
			if !strings.Contains(said.String(), text) {
				t.Errorf("%s: it says %q, without %s", test.rule, said.String(), text)
			}
		}
	}
}
