package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A status is the result of sending a file or a version.
type status string

// The statuses, as JSON has them.
const (
	nowPublished   status = "published"
	nowStaged      status = "staged"
	alreadyThere   status = "present"       // with the same bytes
	notTaken       status = "refused"       // here or by the registry
	notTransferred status = "failed"        // the registry could not be asked, or failed
	notSent        status = "not_sent"      // because of others
	wouldBeSent    status = "would_be_sent" // in a dry run
)

// A fileOutcome is a file with the result of sending it.
type fileOutcome struct {
	upload
	status  status
	code    int      // of the answer; zero without one
	reasons []string // why it is not taken, in sentences
	message string   // of the registry about what it has; may be empty
}

// An outcome is a version with the result of sending it.
type outcome struct {
	release
	outcomes  []fileOutcome
	status    status
	reasons   []string // why it is not published, beside the reasons of its files
	unoffered bool     // the registry has it, and does not offer it yet
	unlisted  bool     // it was not listed within the time to wait
	unseen    bool     // the token may not read whether it is listed
}

// messages returns what the registry says of the files that it has.
func (o *outcome) messages() (list []string) {
	for _, f := range o.outcomes {
		if f.message != "" && !slices.Contains(list, f.message) {
			list = append(list, f.message)
		}
	}
	return list
}

// unsent is the outcome of a version before anything is sent.
func (p release) unsent(dry bool) outcome {
	o := outcome{release: p, status: notSent}
	switch {
	case len(p.problems) > 0:
		o.status = notTaken
	case dry:
		o.status = wouldBeSent
	}
	for _, f := range p.files {
		status := notSent
		if o.status == wouldBeSent {
			status = wouldBeSent
		}
		o.outcomes = append(o.outcomes, fileOutcome{upload: f, status: status})
	}
	return o
}

// A sender sends versions to a registry.
type sender struct {
	*remote.Client
	run *run
}

// sendAll sends the releases without problems. A failure does not stop the rest. When ctx
// ends, no further file is begun.
func (s *sender) sendAll(ctx context.Context, releases []release) []outcome {
	files, size := 0, int64(0)
	for _, r := range releases {
		if len(r.problems) > 0 {
			continue
		}
		for _, f := range r.files {
			files++
			size += f.size
		}
	}
	s.run.progress.Begin(files, size)
	outcomes := make([]outcome, len(releases))
	s.inParallel(len(releases), func(i int) {
		if len(releases[i].problems) > 0 || ctx.Err() != nil {
			outcomes[i] = releases[i].unsent(false)
			return
		}
		outcomes[i] = s.send(ctx, releases[i])
	})
	return outcomes
}

// inParallel calls do with every number below n.
func (s *sender) inParallel(n int, do func(int)) { cli.InParallel(s.run.parallel, n, do) }

// stageOfSending orders the files of a version: files of the same stage are sent at once,
// after the files of earlier stages.
func stageOfSending(k publish.Kind) int {
	switch k {
	case publish.Checksums:
		return 0 // it decides which bytes count
	case publish.Package, publish.Module:
		return 2 // the last of them completes the version, with all that was sent before
	}
	return 1
}

// send sends a version. If a file is refused, the next stage is not sent.
func (s *sender) send(ctx context.Context, p release) outcome {
	o := p.unsent(false)
	if s.run.dropFirst {
		if err := s.drop(ctx, p.address, p.version); err != nil {
			o.status, o.reasons = s.failure(err)
			return o
		}
	}
	for stage := range 3 {
		var now []*fileOutcome
		for i := range o.outcomes {
			if stageOfSending(o.outcomes[i].Kind) == stage {
				now = append(now, &o.outcomes[i])
			}
		}
		s.inParallel(len(now), func(i int) {
			if ctx.Err() == nil {
				s.sendFile(ctx, now[i])
			}
		})
		if slices.ContainsFunc(now, func(f *fileOutcome) bool { return len(f.reasons) > 0 }) {
			break
		}
	}
	s.findStatus(ctx, &o)
	return o
}

// sendFile sends a file, unless the registry has its bytes.
func (s *sender) sendFile(ctx context.Context, f *fileOutcome) {
	body := &sentBody{f.upload, s.run.progress.File(f.size)}
	answer, err := s.put(ctx, body)
	body.progress.End()
	f.code = answer.Status
	switch {
	case err != nil:
		f.status, f.reasons = s.failure(err)
		return
	case answer.Publication.Status == wire.Staged:
		f.status = nowStaged
		return
	case f.code == http.StatusOK:
		f.status = alreadyThere
	default:
		f.status = nowPublished
	}
	f.message = answer.Publication.Message
}

// failure returns the status and the reasons for an error.
func (s *sender) failure(err error) (status, []string) {
	var refused *remote.RefusedError
	if !errors.As(err, &refused) {
		return notTransferred, []string{cli.Printable(err.Error())}
	}
	reasons := refused.Reasons
	if refused.Advice != "" {
		reasons = append(slices.Clip(reasons), refused.Advice)
	}
	switch code := refused.Status; {
	case code/100 == 3, code == http.StatusTooManyRequests, code >= 500 && code != http.StatusInsufficientStorage:
		return notTransferred, reasons // it has not been asked, or failed
	}
	return notTaken, reasons
}

// findStatus finds out the status of a version after its files have been sent.
func (s *sender) findStatus(ctx context.Context, o *outcome) {
	has := func(status status) bool {
		return slices.ContainsFunc(o.outcomes, func(f fileOutcome) bool { return f.status == status })
	}
	switch {
	case has(notTaken):
		o.status = notTaken
		if slices.ContainsFunc(o.outcomes, func(f fileOutcome) bool { return f.code == http.StatusConflict }) {
			o.reasons = s.conflict(ctx, o)
		}
	case has(notTransferred):
		o.status = notTransferred
	case has(notSent):
		o.status = notSent
	case has(nowPublished):
		o.status = nowPublished
	case has(alreadyThere):
		o.status = alreadyThere
	case o.address.IsModule():
		o.status = nowStaged // nothing but its archive could be missing
	default:
		s.settleStaged(ctx, o)
	}
	if o.status != nowPublished && o.status != alreadyThere {
		return
	}
	for i := range o.outcomes {
		f := &o.outcomes[i]
		// A file that completes a version is answered with 202 if the version is not offered yet.
		o.unoffered = o.unoffered || f.status == nowPublished && f.code == http.StatusAccepted
		if f.status == nowStaged {
			f.status = nowPublished // with the last file
		}
	}
}

// settleStaged asks which files are missing from a version whose files are all staged.
func (s *sender) settleStaged(ctx context.Context, o *outcome) {
	state, err := s.state(ctx, o.address, o.version)
	switch {
	case err != nil:
		o.status, o.reasons = s.failure(err)
	case state.Status == wire.Published: // by another publisher
		o.status = nowPublished
	default:
		o.status = nowStaged
		missing := make([]string, len(state.Missing))
		for i, name := range state.Missing {
			missing[i] = cli.Printable(name)
		}
		o.reasons = []string{"It still needs: " + cli.List(missing) + "."}
		if slices.ContainsFunc(missing, func(name string) bool { return strings.HasSuffix(name, ".sig") }) {
			o.reasons = append(o.reasons, "The registry requires the signature of the publisher: sign SHA256SUMS with gpg --detach-sign.")
		}
	}
}

// conflict says what to do if the registry has other bytes of the same version.
func (s *sender) conflict(ctx context.Context, o *outcome) []string {
	switch {
	case o.tag != "":
		return []string{fmt.Sprintf("Other bytes of version %s have been published than the tag %s has now, at commit %.12s of %s. If the tag was moved, move it back, and make a new one for what has changed.",
			o.version, cli.Printable(o.tag), o.commit, o.date.UTC().Format(time.DateOnly))}
	case o.address.IsModule():
		return nil
	}
	if state, err := s.state(ctx, o.address, o.version); err == nil && state.Status == wire.Staged {
		return []string{"Another build of this version has been sent, and is not complete: send the rest of that, or discard it and send this one with --drop-staged."}
	}
	return nil
}

// listInterval is how often the registry is asked for its versions.
const listInterval = 500 * time.Millisecond

// awaitAll waits until clients are offered the published versions.
func (s *sender) awaitAll(ctx context.Context, outcomes []outcome, patience time.Duration) {
	waiting := make(map[address.Address][]*outcome)
	for i := range outcomes {
		if o := &outcomes[i]; o.status == nowPublished || o.status == alreadyThere {
			waiting[o.address] = append(waiting[o.address], o)
		}
	}
	addresses := slices.Collect(maps.Keys(waiting))
	s.inParallel(len(addresses), func(i int) { s.await(ctx, addresses[i], waiting[addresses[i]], patience) })
}

// await waits until clients are offered versions of an address. Tokens of CI jobs often may
// publish and not read: with them, that cannot be known.
func (s *sender) await(ctx context.Context, a address.Address, waiting []*outcome, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(listInterval)
	defer tick.Stop()
	why, unseen := "", false
	for {
		listed, err := s.Versions(ctx, a)
		waiting = slices.DeleteFunc(waiting, func(o *outcome) bool {
			o.unoffered = o.unoffered && !listed[o.version]
			return listed[o.version]
		})
		if len(waiting) == 0 {
			return
		}
		if ctx.Err() == nil {
			why, unseen = "", false
		}
		switch {
		case remote.IsRefusedByRegistry(err, http.StatusNotFound):
			unseen = true // a version that may not be read looks like one that does not exist yet
		case remote.IsRefused(err, http.StatusUnauthorized, http.StatusForbidden):
			unseen = true
			cancel()
		case err != nil && ctx.Err() == nil:
			why = ": " + cli.Printable(err.Error())
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		for _, o := range waiting {
			if o.unseen = unseen; unseen {
				o.unoffered = false // it may be offered meanwhile
				continue
			}
			o.unlisted = true
			o.reasons = append(o.reasons, fmt.Sprintf("It is published, and was not listed within %s%s.", patience, why))
		}
		return
	}
}
