package protocol

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// AppendState appends all that decides what h does next, so that a model check can tell two states
// apart. Instants are written relative to now, in steps of the quantum: how long ago a deadline was
// doesn't count, nor how long ago beyond the TTL something was seen. How many retries there were
// doesn't either, when the pause between two is below the quantum. Names writes a nonce or a
// version, of which nothing counts but which are equal.
func (h *Hold) AppendState(b []byte, now clock.Instant, quantum time.Duration, names func([]byte, string) []byte) []byte {
	due := func(t clock.Instant) {
		b = AppendDue(b, t, now, quantum)
	}
	past := func(t clock.Instant) {
		b = binary.AppendUvarint(b, uint64(min(max(now.Sub(t), 0), h.Timing.TTL)/quantum))
	}
	flags := func(all ...bool) {
		var n byte
		for i, f := range all {
			if f {
				n |= 1 << i
			}
		}
		b = append(b, n)
	}
	b = append(b, byte(h.Phase), byte(h.Cause), byte(h.att.Op))
	flags(h.Failing, h.recFresh, h.sessionRead, h.once, h.gone, h.Try, h.Notice != nil, h.rec.Known)
	flags(h.att.Tied, h.att.Doubt, h.att.Ask, h.session.Known, h.Err != nil, h.Follow)
	beside := h.beside
	if beside == nil {
		beside = &store.Record{}
	}
	for _, r := range []*store.Record{&h.Term, &h.rec.Rec, &h.session.Rec, &h.att.Rec, beside} {
		b = AppendRecord(b, r, names)
	}
	if h.Phase == Held {
		due(h.Deadline)
		due(h.renewAt)
	}
	due(h.retryAt)
	due(h.leave.By)
	if h.rec.Rec.Owner != "" { // what nobody holds is free, however long that has been seen
		past(h.rec.Since)
	}
	if h.session.Rec.Owner != "" {
		past(h.session.Since)
	}
	if h.att.Tied {
		past(h.att.Sent)
	}
	if quantum < h.Timing.Attempt {
		b = append(b, byte(min(h.failures, 10)))
	}
	for _, nonce := range h.mine {
		b = names(b, nonce)
	}
	b = names(b, h.pending)
	if h.Patience > 0 {
		b = names(b, h.left)
		due(h.claimAt)
	}
	return appendText(b, h.leave.To)
}

// AppendDue appends when t comes, in steps of the quantum: how long ago it came doesn't count.
func AppendDue(b []byte, t, now clock.Instant, quantum time.Duration) []byte {
	left := min(max(t.Sub(now), 0), 1000*quantum)
	return binary.AppendUvarint(b, uint64((left+quantum-1)/quantum))
}

// AppendRecord appends what decides of a record; see [Hold.AppendState].
func AppendRecord(b []byte, r *store.Record, names func([]byte, string) []byte) []byte {
	b = binary.AppendUvarint(b, uint64(r.Token))
	for _, text := range []string{r.Owner, r.Session, string(r.Intervention), string(r.Kind)} {
		b = appendText(b, text)
	}
	base, mark, _ := strings.Cut(r.Nonce, markSep)
	b = names(names(names(b, base), mark), r.Version)
	b = binary.AppendVarint(b, int64(r.TTL))
	return append(b, r.Data...)
}

func appendText(b []byte, s string) []byte {
	return append(append(b, byte(len(s))), s...)
}
