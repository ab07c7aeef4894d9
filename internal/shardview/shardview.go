// Package shardview is how the command and the server show a sharded space: who owns what, and what
// moves.
package shardview

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sort"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
)

// View is a space as it was at about one time: its records are read one after the other.
type View struct {
	Info    shard.Info
	Members []shard.Member
	Entries []shard.Entry // in the order of the map

	names  map[string]shard.Member // by session
	silent map[string]bool         // sessions that are over, or were not renewed for their TTL
	loads  map[string]load         // of sessions that have measured it
}

// load is what a session has measured of its slices, by their tags.
type load struct {
	of   map[uint32]float64
	rest float64 // of each slice that isn't among them
}

// Read reads a space. obs, which may be nil, says which workers' sessions are over: it remembers
// what it saw. Without obs sessions aren't read, and no loads are known. Read blocks until the
// store has answered, or ctx is done.
func Read(ctx context.Context, st store.Store, space string, obs *lease.Observer) (*View, error) {
	v := &View{silent: map[string]bool{}, loads: map[string]load{}}
	var err error
	if v.Info, err = shard.Describe(ctx, st, space); err != nil {
		return nil, err
	}
	if v.Members, err = shard.Members(ctx, st, space); err != nil {
		return nil, err
	}
	if v.Entries, err = shard.All(ctx, st, space); err != nil {
		return nil, err
	}
	v.names = map[string]shard.Member{}
	for _, m := range v.Members {
		v.names[m.Session] = m
	}
	if obs != nil {
		err = v.listen(ctx, st, obs)
	}
	return v, err
}

// singly is how many sessions are read one by one. More are listed.
const singly = 16

// listen finds the sessions that are over.
func (v *View) listen(ctx context.Context, st store.Store, obs *lease.Observer) error {
	note := func(rec store.Record) {
		if d, ok := shardmap.ParseDigest(rec.Info[shardmap.Carried]); ok {
			l := load{map[uint32]float64{}, d.Rest}
			for _, s := range d.Slices {
				l.of[s.Tag] = s.Load
			}
			v.loads[rec.Key] = l
		}
		if standing := obs.Saw(rec).Standing; standing != lease.NameHeld {
			v.silent[rec.Key] = true
		}
	}
	if len(v.Members) <= singly {
		for _, m := range v.Members {
			rec, err := store.Load(ctx, st, m.Session)
			if err != nil {
				return err
			}
			note(rec)
		}
		return nil
	}
	there := map[string]bool{}
	for rec, err := range st.List(ctx, keyspace.SessionPrefix) {
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return err
		}
		if _, is := v.names[rec.Key]; is && err == nil {
			there[rec.Key] = true
			note(rec)
		}
	}
	for _, m := range v.Members {
		if !there[m.Session] {
			v.silent[m.Session] = true
		}
	}
	return nil
}

// Space is the space with its counts.
func (v *View) Space() api.ShardSpace {
	s := api.ShardSpace{Space: v.Info.Name, Hashed: v.Info.Hashed, Slices: len(v.Entries), Assigner: v.Info.Assigner, Placement: placement(v.Info.Placement)}
	for _, e := range v.Entries {
		if e.Owner == "" {
			s.Unowned++
		}
		if e.Next != "" {
			s.Moving++
		}
	}
	return s
}

func placement(p shard.Placement) *api.ShardPlacement {
	if p.Max == 0 && !p.Zones && len(p.Pins) == 0 {
		return nil
	}
	out := &api.ShardPlacement{Max: p.Max, SpreadZones: p.Zones}
	for _, pin := range p.Pins {
		out.Pins = append(out.Pins, api.ShardPin{Prefix: pin.Prefix, Zone: pin.Zone, Worker: pin.Worker, Labels: pin.Labels})
	}
	return out
}

// Workers are the members with their counts. Owners that are no members any more come last, without
// a name of their own: their sessions are over, or about to be.
func (v *View) Workers() []api.ShardWorker {
	at := map[string]int{}
	var all []api.ShardWorker
	add := func(w api.ShardWorker) {
		at[w.Session] = len(all)
		all = append(all, w)
	}
	for _, m := range v.Members {
		add(api.ShardWorker{
			Worker: m.Name, Holder: m.Holder, Session: m.Session, Address: m.Address, Zone: m.Zone, Capacity: m.Capacity, Labels: m.Labels,
			Leaving: m.Leaving, Drained: m.Drained, Silent: v.silent[m.Session], Since: m.Since,
		})
	}
	of := func(session string) *api.ShardWorker {
		i, ok := at[session]
		if !ok {
			owner := keyspace.OwnerOf(session)
			i = len(all)
			add(api.ShardWorker{Worker: owner, Holder: owner, Session: session, Silent: true})
		}
		return &all[i]
	}
	for _, e := range v.Entries {
		if e.Owner != "" {
			w := of(e.Owner)
			w.Slices++
			w.Load += v.load(e)
			if e.Next != "" || e.Asked == "remove" {
				w.Going++
			}
		}
		if e.Next != "" {
			of(e.Next).Coming++
		}
	}
	return all
}

// Worker returns the worker with that session, and whether it is a member or owns something.
func (v *View) Worker(session string) (api.ShardWorker, bool) {
	for _, w := range v.Workers() {
		if w.Session == session {
			return w, true
		}
	}
	return api.ShardWorker{}, false
}

// Name returns how a session's worker is called; "" for no session.
func (v *View) Name(session string) string {
	return cmp.Or(v.names[session].Name, keyspace.OwnerOf(session))
}

// Slice is an entry as it is shown.
func (v *View) Slice(e shard.Entry) api.ShardSlice {
	s := slice(e, func(session string) shard.Member { return v.names[session] })
	s.Load = v.load(e)
	return s
}

// load returns what the owner of a slice has measured of it; 0 when nothing is known.
func (v *View) load(e shard.Entry) float64 {
	l := v.loads[e.Owner]
	if one, ok := l.of[shardmap.Tag(e.From)]; ok {
		return one
	}
	return l.rest
}

func slice(e shard.Entry, member func(session string) shard.Member) api.ShardSlice {
	name := func(session string) string { return cmp.Or(member(session).Name, keyspace.OwnerOf(session)) }
	s := api.ShardSlice{
		Slice: e.ID(), Token: e.Token, Worker: name(e.Owner), Address: member(e.Owner).Address, Holder: keyspace.OwnerOf(e.Owner), Session: e.Owner,
		Next: name(e.Next), Asked: e.Asked,
	}
	if t := shardmap.TokenTime(e.Token); e.Token != 0 && !t.IsZero() {
		s.Since = &t
	}
	return s
}

// Page returns up to limit slices behind the one with that ID, and the ID to continue from; "" at
// the end.
func (v *View) Page(after string, limit int) (list []api.ShardSlice, next string, err error) {
	from := 0
	if after != "" {
		if from, err = v.behind(after); err != nil {
			return nil, "", err
		}
	}
	to := min(from+limit, len(v.Entries))
	list = make([]api.ShardSlice, 0, to-from)
	for _, e := range v.Entries[from:to] {
		list = append(list, v.Slice(e))
	}
	if to < len(v.Entries) {
		next = v.Entries[to-1].ID()
	}
	return list, next, nil
}

// behind returns where the slices begin that come after that ID, whether it is there or not.
func (v *View) behind(after string) (int, error) {
	if v.Info.Hashed {
		h, err := shardmap.ParseHash(after)
		return sort.Search(len(v.Entries), func(i int) bool { return v.Entries[i].From > h }), err
	}
	if i := slices.IndexFunc(v.Entries, func(e shard.Entry) bool { return e.Name == after }); i >= 0 {
		return i + 1, nil
	}
	part := func(name string) uint64 { return shard.Hash(name) >> (64 - bits(v.Info.Records)) }
	at := part(after)
	return sort.Search(len(v.Entries), func(i int) bool {
		p := part(v.Entries[i].Name)
		return p > at || p == at && v.Entries[i].Name > after
	}), nil
}

// bits returns of how many bits of the hash the record of a name follows; a shift by 64 leaves 0.
func bits(records int) (n int) {
	for ; records > 1; records >>= 1 {
		n++
	}
	return n
}

// Status is all of it, with a page of the slices.
func (v *View) Status(after string, limit int) (api.ShardStatus, error) {
	list, next, err := v.Page(after, limit)
	return api.ShardStatus{ShardSpace: v.Space(), Workers: v.Workers(), List: list, Next: next}, err
}

// Lookup returns the slice of a key, as it is shown: it reads two or three records.
func Lookup(ctx context.Context, st store.Store, space, key string) (api.ShardSlice, error) {
	e, err := shard.Lookup(ctx, st, space, key)
	if err != nil {
		return api.ShardSlice{}, err
	}
	members, err := shard.Members(ctx, st, space)
	if err != nil {
		return api.ShardSlice{}, err
	}
	return Shown(e, members), nil
}

// Target reads what an operator calls a slice: its name, or in a hashed space its range, or a hash
// in it. hashed says which it is. The error is that of [shardmap.ParseHash], or of the store.
func Target(ctx context.Context, st store.Store, space, text string) (key string, hash uint64, hashed bool, err error) {
	info, err := shard.Describe(ctx, st, space)
	if err != nil || !info.Hashed {
		return text, 0, false, err
	}
	hash, err = shardmap.ParseHash(text)
	return "", hash, true, err
}

// Shown is an entry as it is shown, by members that were read before.
func Shown(e shard.Entry, members []shard.Member) api.ShardSlice {
	return slice(e, func(session string) shard.Member {
		for _, m := range members {
			if m.Session == session {
				return m
			}
		}
		return shard.Member{}
	})
}

// History returns the last changes, the newest first.
func History(ctx context.Context, st store.Store, space string) ([]api.ShardChange, error) {
	changes, err := shard.History(ctx, st, space)
	if err != nil {
		return nil, err
	}
	members, err := shard.Members(ctx, st, space)
	if err != nil {
		return nil, err
	}
	v := &View{names: map[string]shard.Member{}}
	for _, m := range members {
		v.names[m.Session] = m
	}
	all := make([]api.ShardChange, 0, len(changes))
	for _, c := range changes {
		all = append(all, api.ShardChange{Time: c.At, Slice: c.ID(), Token: c.Token, Why: c.Why, Worker: v.Name(c.Owner), Before: v.Name(c.Before)})
	}
	return all, nil
}

// Spaces returns all spaces with their counts, one after the other.
func Spaces(ctx context.Context, st store.Store, may func(space string) bool) iter.Seq2[api.ShardSpace, error] {
	return func(yield func(api.ShardSpace, error) bool) {
		names, err := shard.Spaces(ctx, st)
		if err != nil {
			yield(api.ShardSpace{}, err)
			return
		}
		for _, name := range names {
			if !may(name) {
				continue
			}
			v, err := Read(ctx, st, name, nil)
			if err != nil {
				yield(api.ShardSpace{}, err)
				return
			}
			if !yield(v.Space(), nil) {
				return
			}
		}
	}
}

// Pick returns the member of that name, address, owner id or session.
func (v *View) Pick(worker string) (shard.Member, error) {
	return shard.Pick(v.Members, v.Info.Name, worker)
}
