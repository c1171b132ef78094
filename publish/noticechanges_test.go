package publish_test

import (
	"reflect"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

// The result names the versions that a new registry.hcl withdraws, deprecates or
// restores, in comparison with the file before it.
func TestNoticeChanges(t *testing.T) { eachTree(t, testNoticeChanges) }

func testNoticeChanges(t *testing.T, on treeKind) {
	r := on.newRegistry(t)
	r.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	f := metadataFile(t, vpc)
	for _, step := range []struct {
		rule, content string
		want          publish.NoticeChanges
	}{
		{"a description", `owner = "ci"`, publish.NoticeChanges{}},
		{"notices", "deprecated \"< 1.0.0\" {}\nwithdrawn \"1.1.0\" {}\n", publish.NoticeChanges{Deprecated: []string{"< 1.0.0"}, Withdrawn: []string{"1.1.0"}}},
		{"the same once more", "deprecated \"< 1.0.0\" {}\nwithdrawn \"1.1.0\" {}\n", publish.NoticeChanges{}},
		{"another reason", "deprecated \"< 1.0.0\" {}\nwithdrawn \"1.1.0\" {\n  reason = \"a leak\"\n}\n", publish.NoticeChanges{}},
		{"deprecated, and withdrawn no more", "deprecated \"< 1.0.0\" {}\ndeprecated \"1.1.0\" {}\n", publish.NoticeChanges{Deprecated: []string{"1.1.0"}, Restored: []string{"1.1.0"}}},
		{"withdrawn, and deprecated no more", "deprecated \"< 1.0.0\" {}\nwithdrawn \"1.1.0\" {}\n", publish.NoticeChanges{Withdrawn: []string{"1.1.0"}}},
		{"no notice", `owner = "ci"`, publish.NoticeChanges{Restored: []string{"1.1.0", "< 1.0.0"}}},
		{"no file", "\n", publish.NoticeChanges{}},
	} {
		result, err := r.Put(t.Context(), f, upload(step.content))
		if err != nil {
			t.Fatalf("%s: %v", step.rule, err)
		}
		got := result.Notices
		for _, list := range []*[]string{&got.Withdrawn, &got.Deprecated, &got.Restored} {
			if len(*list) == 0 {
				*list = nil
			}
		}
		if !reflect.DeepEqual(got, step.want) || got.Any() != !reflect.DeepEqual(step.want, publish.NoticeChanges{}) {
			t.Errorf("%s: it changes %+v, not %+v", step.rule, got, step.want)
		}
	}
}
