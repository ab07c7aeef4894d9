package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// inspectWithin bounds each question that Inspect asks.
const inspectWithin = 5 * time.Second

// Inspect implements [driver.Inspector]. It asks every endpoint for its status, and writes, reads,
// watches and deletes a key of its own under the store's prefix. It blocks for 5 s for each
// endpoint that doesn't answer, at the most.
func (s *Store) Inspect(ctx context.Context) []driver.Finding {
	if err := s.ready(ctx); err != nil {
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
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), inspectWithin)
	defer cancel()
	permissions := driver.Finding{What: "permissions", Status: driver.StatusOK, Detail: fmt.Sprintf("keys under %q can be read, written, watched and deleted", s.prefix)}
	conditions := driver.Finding{What: "consistency", Status: driver.StatusOK, Detail: "linearizable reads; a write under an old version is refused"}
	err := s.tryKeys(ctx)
	switch {
	case errors.Is(err, errIgnored):
		conditions.Status, conditions.Detail = driver.StatusFail, err.Error()
		conditions.Advice = "what is between client and server? Connect to etcd itself"
	case err != nil:
		permissions.Status, permissions.Detail = driver.StatusFail, err.Error()
		permissions.Advice = fmt.Sprintf("etcdctl role grant-permission ROLE --prefix=true readwrite %q", s.prefix)
		return []driver.Finding{permissions}
	}
	return []driver.Finding{permissions, conditions}
}

// errIgnored says that a condition was not heeded.
var errIgnored = errors.New("a write under another version was carried out")

func (s *Store) tryKeys(ctx context.Context) (err error) {
	key := ".inspect/" + rand.Text()
	first, err := s.Put(ctx, store.Record{Key: key, Nonce: "1"})
	if err != nil {
		return err
	}
	last := first.Version
	defer func() { err = errors.Join(err, s.Delete(ctx, key, last)) }()
	told := make(chan error, 1)
	go func() {
		_, err := s.Wait(ctx, key, first.Version)
		told <- err
	}()
	second, err := s.Put(ctx, store.Record{Key: key, Nonce: "2", Version: first.Version})
	if err == nil {
		last = second.Version
	}
	if err := errors.Join(err, <-told); err != nil {
		return err
	}
	for _, version := range []string{"", first.Version} {
		if _, err := s.Put(ctx, store.Record{Key: key, Nonce: "3", Version: version}); !errors.Is(err, store.ErrConflict) {
			return errors.Join(errIgnored, err)
		}
	}
	return nil
}
