package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/inspect"
	"github.com/leasehold/leasehold/store/driver"
)

// inspectWithin bounds each question that Inspect asks.
const inspectWithin = 5 * time.Second

// Inspect implements [driver.Inspector]. It asks every endpoint for its status, and writes, reads,
// watches and deletes a key of its own under the store's prefix. It blocks for 5 s for each
// endpoint that doesn't answer, at the most.
func (s *Store) Inspect(ctx context.Context) []driver.Finding {
	if err := s.watches.Ready(ctx); err != nil {
		return []driver.Finding{{What: "server", Status: driver.StatusFail, Detail: err.Error()}}
	}
	findings, reached := s.inspectServers(ctx)
	if !reached {
		within, cancel := clock.WithTimeout(ctx, clock.System(), inspectWithin)
		defer cancel()
		if err := s.Ping(within); err != nil { // it knows why
			findings = append(findings, driver.Finding{What: "server", Status: driver.StatusFail, Detail: err.Error()})
		}
		return findings
	}
	findings = append(findings, s.inspectMembers(ctx), s.inspectUser(ctx))
	return append(findings, s.inspectKeys(ctx)...)
}

// inspectServers reports on each endpoint, and whether one answered.
func (s *Store) inspectServers(ctx context.Context) (findings []driver.Finding, reached bool) {
	for _, endpoint := range s.client.Endpoints() {
		within, cancel := clock.WithTimeout(ctx, clock.System(), inspectWithin)
		status, err := s.client.Status(within, endpoint)
		cancel()
		if err != nil {
			findings = append(findings, driver.Finding{What: "server", Status: driver.StatusFail, Detail: fmt.Sprintf("%s: %v", endpoint, Explain(err))})
			continue
		}
		reached = true
		findings = append(findings, inspectStatus(endpoint, status))
	}
	for i := range findings {
		if reached && findings[i].Status == driver.StatusFail && findings[i].Advice == "" {
			findings[i].Status = driver.StatusWarn // the others serve
		}
	}
	return findings, reached
}

// inspectStatus reports on one endpoint that answered.
func inspectStatus(endpoint string, status *clientv3.StatusResponse) driver.Finding {
	f := driver.Finding{
		What: "server", Status: driver.StatusOK,
		Detail: fmt.Sprintf("%s: etcd %s, database of %d MiB", endpoint, status.Version, status.DbSize>>20),
	}
	quota := status.DbSizeQuota
	switch {
	case slices.ContainsFunc(status.Errors, func(e string) bool { return strings.Contains(e, "NOSPACE") }):
		f.Status, f.Detail = driver.StatusFail, f.Detail+", full"
		f.Advice = "compact and defragment it, then: etcdctl alarm disarm"
	case len(status.Errors) > 0:
		f.Status, f.Detail = driver.StatusFail, f.Detail+": "+strings.Join(status.Errors, ", ")
		f.Advice = "see: etcdctl endpoint status, and: etcdctl alarm list"
	case status.Leader == 0:
		f.Status, f.Detail = driver.StatusFail, f.Detail+", without a leader"
		f.Advice = "bring up a majority of the members"
	case status.IsLearner:
		f.Status, f.Detail = driver.StatusWarn, f.Detail+", a learner"
		f.Advice = "take it off the endpoints: a learner serves neither writes nor linearizable reads"
	case quota > 0 && status.DbSize > quota/10*8:
		f.Status, f.Detail = driver.StatusWarn, fmt.Sprintf("%s of %d MiB", f.Detail, quota>>20)
		f.Advice = "turn on --auto-compaction-retention and defragment: at its quota, the database refuses all writes"
	}
	return f
}

func (s *Store) inspectMembers(ctx context.Context) driver.Finding {
	within, cancel := clock.WithTimeout(ctx, clock.System(), inspectWithin)
	defer cancel()
	f := driver.Finding{What: "members", Status: driver.StatusOK}
	resp, err := s.client.MemberList(within)
	if err != nil {
		f.Status, f.Detail = driver.StatusWarn, "can't be listed: "+Explain(err).Error()
		return f
	}
	voters := 0
	for _, m := range resp.Members {
		if !m.IsLearner {
			voters++
		}
	}
	f.Detail = fmt.Sprintf("%d with a vote, cluster %x", voters, resp.Header.ClusterId)
	switch {
	case voters == 1:
		f.Status, f.Advice = driver.StatusWarn, "a cluster of 3 continues when one fails; while this one is down no lease can be renewed"
	case voters%2 == 0:
		f.Status, f.Advice = driver.StatusWarn, "make it an odd number: an even one tolerates no more failures than one less"
	}
	return f
}

func (s *Store) inspectUser(ctx context.Context) driver.Finding {
	within, cancel := clock.WithTimeout(ctx, clock.System(), inspectWithin)
	defer cancel()
	f := driver.Finding{What: "identity", Status: driver.StatusOK}
	auth, err := s.client.AuthStatus(within)
	switch {
	case err == nil && !auth.Enabled:
		f.Detail = "authentication is off: everybody who reaches the server may change every lease"
	case s.client.Username != "":
		f.Detail = "user " + s.client.Username
	default:
		f.Detail = "the common name of the client's certificate"
	}
	return f
}

// inspectKeys tries what the store does, on a key of its own.
func (s *Store) inspectKeys(ctx context.Context) []driver.Finding {
	return inspect.Trial{
		Store: s, Within: inspectWithin, Where: fmt.Sprintf(" under %q", s.prefix), Reads: "linearizable reads", Wait: true,
		Advice: fmt.Sprintf("etcdctl role grant-permission ROLE --prefix=true readwrite %q", s.prefix),
	}.Run(ctx)
}
