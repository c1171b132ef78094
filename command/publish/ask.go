package publish

import (
	"context"
	"net/http"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

// headerOnly is the header field with which a client asks whether the registry would take a
// file, or has it, without sending the file. Clients of Artifactory use it.
const headerOnly = "X-Checksum-Deploy"

// ask asks the registry what it would answer to the files, without sending any. Without a
// token, as in a job for a stranger's pull request, the registry cannot be asked.
func (r *run) ask(ctx context.Context, result *result) error {
	client, err := remote.NewClient(ctx, r.network, r.tokens)
	if err != nil {
		return err
	}
	defer client.Close()
	if !client.HasToken() {
		result.unasked = client.Hint
		return nil
	}
	if err := client.Discover(ctx, r.to); err != nil {
		return err
	}
	s := &sender{client, r}
	s.inParallel(len(result.outcomes), func(i int) {
		if o := &result.outcomes[i]; o.status == wouldBeSent && ctx.Err() == nil {
			s.askFor(ctx, o)
		}
	})
	result.interrupted = ctx.Err() != nil
	return nil
}

// askFor asks for the files of a version, and finds out what would become of it.
func (s *sender) askFor(ctx context.Context, o *outcome) {
	s.inParallel(len(o.outcomes), func(i int) { s.askForFile(ctx, &o.outcomes[i]) })
	is := func(statuses ...status) func(fileOutcome) bool {
		return func(f fileOutcome) bool { return slices.Contains(statuses, f.status) }
	}
	switch {
	case slices.ContainsFunc(o.outcomes, is(notTaken, notTransferred)):
		s.findStatus(ctx, o)
	case !slices.ContainsFunc(o.outcomes, func(f fileOutcome) bool { return f.code != http.StatusOK }):
		o.status = alreadyThere
	}
}

// askForFile asks for a file.
func (s *sender) askForFile(ctx context.Context, f *fileOutcome) {
	answer, err := s.wouldTake(ctx, f.upload)
	switch {
	case err == nil:
		f.status, f.code, f.message = alreadyThere, answer.Status, answer.Publication.Message
	case remote.IsRefusedByRegistry(err, http.StatusNotFound):
	case remote.IsRefusedByRegistry(err, http.StatusConflict) && f.Kind == publish.Signature:
		// Another signature may be as good. The registry needs its bytes to know.
	default:
		f.code = answer.Status
		f.status, f.reasons = s.failure(err)
	}
}
