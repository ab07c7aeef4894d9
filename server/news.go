package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
)

// news are what there is to tell at a time. They don't change, so all watchers read the same ones,
// and lock nothing.
type news struct {
	seq uint64 // of the last change
	// The changes since from, in order; one that another one has followed may be missing.
	past []*item
	from uint64
	// Everything, as it was at a change that the past reaches back to; nil until the store has been
	// looked at.
	view *view
	at   clock.Instant
	err  error         // why the store couldn't be looked at; nil when it could
	next chan struct{} // closed when there are others
}

// known reports whether there is anything to tell yet.
func (n *news) known() bool { return n.view != nil || n.err != nil }

// view is the state of everything as of a change.
type view struct {
	seq      uint64
	names    []*item // in order
	sessions map[string]*item
}

func newView(names, sessions map[string]*item, seq uint64) *view {
	v := &view{seq: seq, sessions: maps.Clone(sessions)}
	v.names = slices.SortedFunc(maps.Values(names), func(a, b *item) int { return strings.Compare(a.key, b.key) })
	return v
}

// under returns the names that begin with prefix, in order.
func (v *view) under(prefix string) []*item {
	from, _ := slices.BinarySearchFunc(v.names, prefix, func(i *item, p string) int { return strings.Compare(i.key, p) })
	behind := v.names[from:]
	n, _ := slices.BinarySearchFunc(behind, prefix, func(i *item, p string) int {
		if strings.HasPrefix(i.key, p) {
			return -1
		}
		return 1
	})
	return behind[:n]
}

// after returns the changes after seq, and whether all of them are known.
func (n *news) after(seq uint64) ([]*item, bool) {
	if seq < n.from || seq > n.seq {
		return nil, false
	}
	i, _ := slices.BinarySearchFunc(n.past, seq+1, func(i *item, at uint64) int { return cmp.Compare(i.seq, at) })
	return n.past[i:], true
}

// old reports whether another change of the same name or session has followed that one, so that
// only this is told.
func (n *news) old(i *item) bool {
	next := i.next.Load()
	return next != 0 && next <= n.seq
}

// keepers returns the sessions that keep, or have kept of late, names that begin with prefix.
func (n *news) keepers(prefix string) map[string]bool {
	all := map[string]bool{}
	for _, list := range [][]*item{n.view.under(prefix), n.past} {
		for _, i := range list {
			if i.keeper != "" && strings.HasPrefix(i.key, prefix) {
				all[i.keeper] = true
			}
		}
	}
	return all
}

// item is the state of a name or a session at a time, encoded once for all who are told of it. Once
// it is noted, only next changes.
type item struct {
	key     string
	version string
	seq     uint64
	next    atomic.Uint64 // the change that followed; 0 for none
	at      clock.Instant
	session bool // it is one
	gone    bool // the record of the name, or the session for good
	waiters int
	paused  *api.Pause
	turn    turnMark
	keeper  string       // the session that keeps the name; "" for none
	left    *api.Seconds // of the hold, at that time; nil when it isn't known
	body    []byte       // the JSON, but for what opening has and for what is left
}

// The events begin with what isn't encoded once: the number of the change, and what is left.
const (
	leaseOpening   = `{"seq":0,"lease":{`
	sessionOpening = `{"seq":0,`
)

// encode encodes the event that tells of it: a [api.Event] or a [api.SessionEvent] that says
// nothing of what is left.
func (i *item) encode(event any) {
	text, err := json.Marshal(event)
	if err != nil { // strings and numbers only, and dates: of a year beyond 9999, perhaps
		text = []byte(i.opening() + `"problem":{"detail":` + strconv.Quote(err.Error()) + `}}}`)
	}
	i.body = bytes.TrimPrefix(text, []byte(i.opening()))
}

func (i *item) opening() string {
	if i.session {
		return sessionOpening
	}
	return leaseOpening
}

// appendTo appends the event to b as it is to be sent now: what was left has become less.
func (i *item) appendTo(b []byte, now clock.Instant) []byte {
	kind, opening := "lease", `,"lease":{`
	if i.session {
		kind, opening = "session", `,`
	}
	b = append(append(b, "event: "...), kind...)
	b = strconv.AppendUint(append(b, "\ndata: {\"seq\":"...), i.seq, 10)
	b = append(b, opening...)
	if rest := left(i.left, now.Sub(i.at)); rest != nil {
		b = append(rest.Append(append(b, `"expires_in":`...)), ',')
	}
	return append(append(b, i.body...), "\n\n"...)
}

// same reports whether two pauses are one.
func same(a, b *api.Pause) bool {
	return a == b || a != nil && b != nil && a.By == b.By && a.Reason == b.Reason && a.Since.Equal(b.Since) && a.Until.Equal(b.Until)
}
