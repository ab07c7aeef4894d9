package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	rec, _, err := s.load(ctx, key)
	if err == nil && rec.Version == "" {
		return store.Record{}, driver.NotFound(key)
	}
	return rec, err
}

// load is [store.Load], and returns the sequence of the message that it found: that of a deletion
// where the key was deleted, 0 where there is none.
func (s *Store) load(ctx context.Context, key string) (store.Record, uint64, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, 0, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, 0, err
	}
	msg, err := s.last(ctx, s.subject(encode(key)))
	if err != nil {
		return store.Record{}, 0, fmt.Errorf("%s: can't be read: %w", key, Explain(err))
	}
	if msg == nil || msg.gone() {
		return store.Record{Key: key}, msg.sequence(), nil
	}
	rec, err := record(encode(key), msg.Sequence, msg.Data)
	return rec, msg.Sequence, err
}

// A leader that lags is asked again after catchUp, lagging times at most.
const (
	catchUp = 2 * time.Millisecond
	lagging = 500
)

// loadFrom is load, from a leader that has the message with that sequence, if one of so high a
// sequence comes to exist. A replica delivers a message to its consumers as soon as it is
// committed, perhaps before the leader itself has it; and a leader that has been replaced lags
// until it notices. Nobody should see an older record after a newer one.
func (s *Store) loadFrom(ctx context.Context, key string, floor uint64) (rec store.Record, sequence uint64, err error) {
	for range lagging {
		rec, sequence, err = s.load(ctx, key)
		if sequence >= floor || (err != nil && sequence == 0) {
			return rec, sequence, err
		}
		if sequence == 0 { // never there, or removed without a trace
			if last, err := s.lastSequence(ctx); err != nil || last >= floor {
				return rec, sequence, err
			}
		}
		if err := watcher.Pause(ctx, s.feeds.Life().Done(), catchUp); err != nil {
			return store.Record{}, 0, err
		}
	}
	return rec, sequence, err
}

// lastSequence returns the sequence of the last message that the leader has.
func (s *Store) lastSequence(ctx context.Context) (last uint64, err error) {
	err = s.bounded(ctx, func(ctx context.Context) error {
		info, err := s.stream.Info(ctx)
		if err == nil {
			last = info.State.LastSeq
		}
		return err
	})
	return last, err
}

// subject is that of the messages of a key, which is given as the bucket has it.
func (s *Store) subject(key string) string { return "$KV." + s.kv.Bucket() + "." + key }

// message is one as the stream's leader reports it.
type message struct {
	Sequence uint64    `json:"seq"`
	Header   []byte    `json:"hdrs"`
	Data     []byte    `json:"data"`
	Time     time.Time `json:"time"`
}

// last asks the stream's leader for the last message of a subject, nil if there is none. The
// bucket's own Get would be answered by any replica, which may lag behind.
func (s *Store) last(ctx context.Context, subject string) (*message, error) {
	body, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return nil, err
	}
	var resp struct {
		Error   *jetstream.APIError `json:"error"`
		Message *message            `json:"message"`
	}
	err = s.bounded(ctx, func(ctx context.Context) error {
		msg, err := s.conn.RequestMsgWithContext(ctx, &natsgo.Msg{Subject: s.api + "STREAM.MSG.GET." + s.name, Data: body})
		if err != nil {
			return err
		}
		return json.Unmarshal(msg.Data, &resp)
	})
	switch {
	case err != nil:
		return nil, err
	case resp.Error != nil && resp.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, nil //nolint:nilnil // no message is an answer like any other
	case resp.Error != nil:
		return nil, resp.Error
	}
	return resp.Message, nil
}

func (m *message) sequence() uint64 {
	if m == nil {
		return 0
	}
	return m.Sequence
}

// gone reports whether the message is a deletion.
func (m *message) gone() bool {
	if len(m.Header) == 0 {
		return false
	}
	header, err := natsgo.DecodeHeadersMsg(m.Header)
	if err != nil {
		return false
	}
	op := header.Get("KV-Operation")
	return op == "DEL" || op == "PURGE" || header.Get(jetstream.MarkerReasonHeader) != ""
}

// record reads a row.
func record(encoded string, sequence uint64, value []byte) (store.Record, error) {
	key, err := decode(encoded)
	if err != nil {
		return store.Record{}, driver.Corrupt(strings.ToValidUTF8(encoded, "?"), err)
	}
	rec, err := driver.Unmarshal(value)
	if err != nil {
		return store.Record{}, driver.Corrupt(key, err)
	}
	rec.Key, rec.Version = key, versionOf(sequence)
	return rec, nil
}

func versionOf(sequence uint64) string { return strconv.FormatUint(sequence, 10) }

// sequenceOf returns the sequence that a version stands for, 0 for "". It reports false for what no
// version looks like.
func sequenceOf(version string) (uint64, bool) {
	if version == "" {
		return 0, true
	}
	sequence, err := strconv.ParseUint(version, 10, 64)
	if err != nil || sequence == 0 || versionOf(sequence) != version {
		return 0, false
	}
	return sequence, true
}
