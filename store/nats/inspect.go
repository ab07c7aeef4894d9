package nats

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/inspect"
	"github.com/leasehold/leasehold/store/driver"
)

// Inspect implements [driver.Inspector]. It looks at the connection and the bucket, and writes,
// reads, watches and deletes a key of its own. A question that isn't answered takes 5 s.
func (s *Store) Inspect(ctx context.Context) []driver.Finding {
	if err := s.ready(ctx); err != nil {
		return []driver.Finding{{What: "server", Status: driver.StatusFail, Detail: err.Error()}}
	}
	if err := s.connected(ctx); err != nil {
		return []driver.Finding{{What: "server", Status: driver.StatusFail, Detail: err.Error(), Advice: "start the server, and check its URL"}}
	}
	server := driver.Finding{
		What: "server", Status: driver.StatusOK,
		Detail: fmt.Sprintf("NATS %s at %s", s.conn.ConnectedServerVersion(), s.conn.ConnectedUrlRedacted()),
	}
	var info *jetstream.StreamInfo
	err := s.bounded(ctx, func(ctx context.Context) (err error) {
		info, err = s.stream.Info(ctx)
		return err
	})
	if err != nil {
		bucket := driver.Finding{What: "bucket", Status: driver.StatusFail, Detail: Explain(err).Error(), Advice: "make the bucket, and allow $JS.API.STREAM.INFO." + s.name}
		return []driver.Finding{server, s.inspectIdentity(), bucket}
	}
	s.saw(info.Config)
	findings := []driver.Finding{server, s.inspectIdentity(), s.inspectBucket(info), s.inspectDurability(info)}
	return append(findings, s.inspectKeys(ctx)...)
}

func (s *Store) inspectBucket(info *jetstream.StreamInfo) driver.Finding {
	c := info.Config
	f := driver.Finding{
		What: "bucket", Status: driver.StatusOK,
		Detail: fmt.Sprintf("%s: %d replicas, history %d, storage %s, %d messages", s.kv.Bucket(), c.Replicas, c.MaxMsgsPerSubject, c.Storage, info.State.Msgs),
	}
	switch err := checkConfig(c); {
	case err != nil:
		f.Status, f.Advice = driver.StatusFail, err.Error()
	case info.Cluster != nil && info.Cluster.Leader == "":
		f.Status, f.Advice = driver.StatusFail, "it has no leader: bring up a majority of its replicas"
	case c.Storage != jetstream.FileStorage:
		f.Status, f.Advice = driver.StatusWarn, "records are gone when its servers stop: use file storage"
	case c.Replicas == 1:
		f.Status, f.Advice = driver.StatusWarn, "with 3 replicas it continues when one server fails"
	case c.MaxMsgsPerSubject > 1:
		f.Status, f.Advice = driver.StatusWarn, "nobody reads old versions: a history of 1 takes less space"
	}
	return f
}

func (s *Store) inspectDurability(info *jetstream.StreamInfo) driver.Finding {
	f := driver.Finding{What: "durability", Status: driver.StatusOK, Detail: "the operator vouches for sync_interval: always"}
	switch {
	case s.opts.synced(info.Config):
		return f
	case s.opts.SyncAlways && info.Config.PersistMode != jetstream.DefaultPersistMode:
		f.Status, f.Detail = driver.StatusWarn, "the bucket's persist mode is async: a write is acknowledged before it is in a file, whatever sync_interval says"
		f.Advice = "make a bucket with the default persist mode"
		return f
	}
	f.Status, f.Detail = driver.StatusWarn, "acknowledged writes may be lost when a server's machine fails: JetStream syncs every 2 minutes unless told otherwise, and doesn't tell clients"
	f.Advice = "set sync_interval: always in the jetstream block of every server, and then SyncAlways (sync=always in the URL)"
	return f
}

// inspectKeys tries what the store does, on a key of its own, and tells how far the leader's clock
// is from this machine's.
func (s *Store) inspectKeys(ctx context.Context) []driver.Finding {
	offset, before := time.Duration(0), clock.System().Wall()
	found := inspect.Trial{
		Store: s, Within: 3 * answerWithin, Reads: "reads by the leader", Wait: true,
		Advice: fmt.Sprintf("allow the subjects that the documentation of store/nats lists, for %s", s.name),
		Stored: func(ctx context.Context, key string) error {
			msg, err := s.last(ctx, s.subject(encode(key)))
			if err == nil && msg != nil {
				after := clock.System().Wall()
				offset = msg.Time.Sub(before.Add(after.Sub(before) / 2))
			}
			return err
		},
	}.Run(ctx)
	if found[0].Status == driver.StatusOK {
		found = append(found, driver.Finding{What: "clock", Status: driver.StatusOK, Detail: fmt.Sprintf("the leader's is %v from this machine's; nothing depends on it", offset.Round(time.Millisecond))})
	}
	return found
}
