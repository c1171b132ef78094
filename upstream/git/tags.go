package git

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// A Tag is a tag of another repository. Its object is what it leads to, also through an annotated tag:
// a commit, unless someone has tagged a file or a folder.
type Tag struct{ Name, Object string }

// peeled ends the name of a tag in a list if the object is what an annotated tag leads to.
const peeled = "^{}"

// ListTags lists the tags of a source, by name, in one request and without fetching anything. Git
// writes only to folder, which ListTags makes and the caller removes. Tags with names that Fetch would
// not accept are left out.
func ListTags(ctx context.Context, s Source, folder string) ([]Tag, error) {
	if err := s.prepare(folder); err != nil {
		return nil, err
	}
	r, err := s.connect(ctx, folder, "sha1") // the list says which format it has
	if err != nil {
		return nil, err
	}
	objects := make(map[string]string)
	take := func(line string) error {
		object, ref, _ := strings.Cut(line, "\t")
		name, ok := strings.CutPrefix(ref, "refs/tags/")
		if !ok || !IsCommit(object) {
			return nil
		}
		name, annotated := strings.CutSuffix(name, peeled)
		if !IsRef(name) {
			return nil
		}
		if _, listed := objects[name]; !listed || annotated {
			objects[name] = object
		}
		if len(objects) > maxTags {
			return r.damaged("it has more than %d tags", maxTags)
		}
		return nil
	}
	if err := r.lines(ctx, nil, take, "ls-remote", "--tags", "--quiet", "origin"); err != nil {
		return nil, err
	}
	tags := make([]Tag, 0, len(objects))
	for name, object := range objects {
		tags = append(tags, Tag{name, object})
	}
	slices.SortFunc(tags, func(a, b Tag) int { return cmp.Compare(a.Name, b.Name) })
	return tags, nil
}
