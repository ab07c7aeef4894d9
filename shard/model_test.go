package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/seeded"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The model check. It visits every state of small worlds: two workers, two slices in one record of the map, an assigner, a store that
// fails over. The keeper of a worker, the assigner's picture and package shardmap are those of production; the model has the place of
// the network, the store and the clocks. In no state two workers act on one key, and the token of a key rises.

// modelScope bounds a world: how often each thing may happen.
type modelScope struct {
	name                                                        string
	proposals, requests, losses, failovers, ends, joins, leaves int
	durable                                                     bool // what the store shows is; a push may be late
}

var modelScopes = []modelScope{
	{name: "moves and lost answers", proposals: 2, losses: 1},
	{name: "moves and failovers", proposals: 2, losses: 1, failovers: 1},
	{name: "sessions end and come back", proposals: 2, ends: 1, joins: 1, losses: 1},
	{name: "splits and merges", proposals: 1, requests: 2},
	{name: "a split or merge, a loss and a failover", proposals: 1, requests: 1, losses: 1, failovers: 1},
	{name: "splits, merges and an end", proposals: 1, requests: 1, ends: 1},
	{name: "a worker leaves", proposals: 1, leaves: 1, losses: 1, failovers: 1},
	{name: "moves and late pushes", proposals: 3, losses: 1, durable: true},
	{name: "splits, merges and late pushes", proposals: 1, requests: 1, losses: 1, durable: true},
}

var (
	modelSpace = shardmap.Space{Format: shardmap.Format, Name: "s", Hashed: true, Slices: 2}
	modelKeys  = []uint64{0, 1 << 62, 1 << 63, 3 << 62}
	modelKey   = modelSpace.ChunkKey(0)
	modelWall  = time.UnixMilli(0)
)

// still is a clock that stands still: tokens rise by one, and no timer fires.
type still struct{}

func (still) Now() clock.Instant                          { return 1 }
func (still) Wall() time.Time                             { return modelWall }
func (still) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

// written is a version of the record, or a write of one.
type written struct {
	version, base int
	token         fence.Token
	data          string
}

func (r written) record() store.Record {
	rec := store.Record{Key: modelKey, Token: r.token, Data: []byte(r.data)}
	if r.version > 0 {
		rec.Version = fmt.Sprint(r.version)
	}
	return rec
}

func (r written) chunk() *shardmap.Chunk {
	c, err := shardmap.ParseChunk(modelSpace, 0, r.record())
	if err != nil {
		panic(err)
	}
	return c
}

// write returns the write that replaces r.
func (r written) write(c *shardmap.Chunk) written {
	rec, err := c.Record("")
	if err != nil {
		panic(err)
	}
	return written{base: r.version, token: rec.Token, data: string(rec.Data)}
}

// What has become of a write that a worker waits for.
const (
	idle = iota
	sent
	landed
	refusedIt
	gone // landed, and lost by a failover: no answer comes
)

// heldSlice is a slice of a keeper.
type heldSlice struct {
	id             string
	from, to       uint64
	token          fence.Token
	phase          phase
	owned, serving bool
}

type modelWorker struct {
	session string
	over    bool // its validity
	leaving bool
	known   bool
	last    written     // if it is known
	token   fence.Token // the highest that it has acted on
	pushed  written     // where pushes are durable: what its follower has heard, which it hasn't acted on
	wait    int
	flight  written
	held    []heldSlice
}

type modelMark struct {
	token  fence.Token
	holder string
}

// modelState is a state of a world. It is a value: no two share a slice that is changed.
type modelState struct {
	cur, durable written
	versions     int
	workers      [2]modelWorker
	closed       []string
	drift        []written // on the way to the store
	marks        [4]modelMark
	left         modelScope
}

// modelStore is the store as a worker meets it in one step.
type modelStore struct {
	store.Store // the rest isn't called
	state       *modelState
	late        bool // a plain read shows what a replica has
	put         func(store.Record) (store.Record, error)
}

func (s *modelStore) Properties() store.Properties {
	if s.state != nil && s.state.left.durable {
		return store.Properties{Engine: "model", Read: store.ReadDurable}
	}
	return store.Properties{Engine: "model", Read: store.ReadLeader}
}

func (s *modelStore) Get(_ context.Context, key string) (store.Record, error) {
	if key != modelKey || s.state.cur.version == 0 {
		return store.Record{}, driver.NotFound(key)
	}
	if s.late {
		return s.state.durable.record(), nil
	}
	return s.state.cur.record(), nil
}

// Confirm shows what no failover takes back.
func (s *modelStore) Confirm(ctx context.Context, key string) (store.Record, error) {
	s.state.durable = s.state.cur
	return s.Get(ctx, key) // both are the same now
}

func (s *modelStore) Put(_ context.Context, rec store.Record) (store.Record, error) {
	return s.put(rec)
}

// model makes the steps. Its manager is there for the store and the TTL.
type model struct {
	st *modelStore
	m  *lease.Manager
}

func newModel(t *testing.T) *model {
	t.Helper()
	st := &modelStore{}
	m, err := lease.NewManager(st, lease.Options{Clock: still{}})
	if err != nil {
		t.Fatal(err)
	}
	return &model{st: st, m: m}
}

// keeper returns the keeper of production in the state of worker i.
func (m *model) keeper(s *modelState, i int) *keeper {
	w := &s.workers[i]
	m.st.state = s
	o := &Owner{m: m.m, clk: still{}, st: m.st, space: modelSpace, chunks: make([]atomic.Pointer[table], 1), leave: w.leaving}
	t := &term{o: o, key: w.session, told: make(chan struct{}, 1), addresses: map[string]string{}, freely: w.leaving, ctx: context.Background()}
	for _, name := range modelSessions {
		t.addresses[name] = ""
	}
	k := &keeper{t: t, kick: make(chan struct{}, 1), held: map[string]*Slice{}, prepared: map[string]*preparation{}, turns: map[string]clock.Instant{}, hasty: true, known: w.known, token: w.token}
	for _, h := range w.held {
		sl := &Slice{Space: "s", From: h.from, To: h.to, Token: h.token, worker: o, over: &t.over, phase: h.phase, ctx: t.ctx}
		sl.cancel = func(error) {}
		sl.owned.Store(h.owned)
		sl.serving.Store(h.serving)
		k.held[h.id] = sl
	}
	return k
}

// keep takes the state of the keeper over.
func (s *modelState) keep(i int, k *keeper) {
	w := &s.workers[i]
	w.held = nil
	for id, sl := range k.held {
		w.held = append(w.held, heldSlice{id, sl.From, sl.To, sl.Token, sl.phase, sl.owned.Load(), sl.serving.Load()})
	}
	slices.SortFunc(w.held, func(a, b heldSlice) int { return cmp.Compare(a.id, b.id) })
}

// acts has worker i act on a chunk that it wrote or read; nil or an error has it read again.
func (s *modelState) acts(i int, k *keeper, c *shardmap.Chunk, err error) {
	w := &s.workers[i]
	w.wait, w.flight, w.known, w.last = idle, written{}, false, written{}
	if err == nil && c != nil {
		k.apply(c)
		w.known, w.last, w.token = true, s.version(c), k.token
	}
	s.keep(i, k)
}

// version returns what a chunk was read from.
func (s *modelState) version(c *shardmap.Chunk) written {
	r := written{token: c.Token}
	_, _ = fmt.Sscan(c.Version(), &r.version)
	rec, err := c.Record("")
	if err != nil {
		panic(err)
	}
	r.data = string(rec.Data)
	return r
}

var modelSessions = []string{".session/a/1", ".session/b/1", ".session/a/2", ".session/b/2", ""}

// copy returns a state that can be changed.
func (s *modelState) copy() *modelState {
	n := *s
	n.closed, n.drift = slices.Clone(s.closed), slices.Clone(s.drift)
	return &n
}

func (s *modelState) key() string { return fmt.Sprintf("%v", *s) }

// step is a state that follows, and how.
type step struct {
	what string
	*modelState
}

// next returns all states that follow s.
func (m *model) next(s *modelState) (all []step) {
	add := func(what string, f func(n *modelState)) {
		n := s.copy()
		f(n)
		all = append(all, step{what, n})
	}
	for i := range s.workers {
		m.worker(s, i, add)
	}
	for i, d := range s.drift {
		add(fmt.Sprintf("write %d arrives", i), func(n *modelState) { n.land(i, d) })
	}
	if s.left.failovers > 0 && s.cur != s.durable {
		add("failover", func(n *modelState) {
			n.left.failovers--
			n.cur = n.durable
			for i := range n.workers { // no answer comes for what is lost
				if w := &n.workers[i]; w.wait == landed && w.flight.version > n.cur.version {
					w.wait = gone
				}
			}
		})
	}
	if s.left.proposals > 0 {
		m.assign(s, add)
	}
	if s.left.requests > 0 {
		for j, sl := range s.cur.chunk().Slices {
			for _, ask := range []shardmap.Ask{shardmap.AskSplit, shardmap.AskMerge} {
				c := s.cur.chunk()
				if sl.Ask != ask && c.Request(j, ask, sl.From+(sl.To-sl.From)/2+1) == nil {
					add(fmt.Sprintf("%s %d is asked for", ask, j), func(n *modelState) {
						n.left.requests--
						w := n.cur.write(c)
						n.drift = append(n.drift, w)
						n.land(len(n.drift)-1, w)
					})
				}
			}
		}
	}
	return all
}

// land lets a write arrive.
func (s *modelState) land(i int, d written) {
	s.drift = slices.Delete(s.drift, i, i+1)
	fate := refusedIt
	if d.base == s.cur.version {
		s.versions++
		s.cur = written{version: s.versions, token: d.token, data: d.data}
		if s.left.durable {
			s.durable = s.cur
		}
		fate = landed
	}
	for j := range s.workers {
		if w := &s.workers[j]; w.wait == sent && w.flight == d {
			w.wait = fate
			if fate == landed {
				w.flight = s.cur
			}
			break
		}
	}
}

// worker has worker i do what it can.
func (m *model) worker(s *modelState, i int, add func(string, func(*modelState))) {
	w := s.workers[i]
	says := func(what string) string { return w.session + " " + what }
	if w.over {
		if !slices.Contains(s.closed, w.session) {
			add(says("is closed"), func(n *modelState) {
				n.closed = append(n.closed, w.session)
				slices.Sort(n.closed)
			})
		} else if s.left.joins > 0 {
			add(says("joins again"), func(n *modelState) {
				n.left.joins--
				n.workers[i] = modelWorker{session: strings.Replace(w.session, "/1", "/2", 1)}
			})
		}
		return
	}
	if s.left.ends > 0 {
		add(says("is over"), func(n *modelState) {
			n.left.ends--
			n.workers[i] = modelWorker{session: w.session, over: true} // it has stopped all
		})
	}
	if s.left.leaves > 0 && !w.leaving {
		add(says("leaves"), func(n *modelState) {
			n.left.leaves--
			n.workers[i].leaving = true
			if k := m.keeper(n, i); w.known && w.wait == idle {
				n.acts(i, k, w.last.chunk(), nil)
			}
		})
	}
	switch w.wait {
	case idle:
		if w.known {
			m.send(s, i, says("sends"), add)
		}
		if !w.known || w.last.version != s.cur.version {
			for _, late := range []bool{false, true} {
				add(says("reads"), func(n *modelState) {
					k := m.keeper(n, i)
					m.st.late = late
					c, err := k.load(context.Background())
					m.st.late = false
					n.acts(i, k, c, err)
				})
			}
		}
		pushes := []written{s.cur, s.durable} // what is pushed may not be durable yet
		if s.cur == s.durable {
			pushes = pushes[:1]
		}
		if s.left.durable {
			pushes = []written{w.pushed}
			if w.pushed != s.cur {
				add(says("is told of a change"), func(n *modelState) { n.workers[i].pushed = n.cur })
			}
		}
		for _, r := range pushes {
			if rec := r.record(); w.known && r.version > 0 && r.version != w.last.version {
				add(says("hears of a change"), func(n *modelState) {
					k := m.keeper(n, i)
					k.told(&rec)
					if c := k.hear(nil); c != nil { // else it reads, as above
						n.acts(i, k, c, nil)
					}
				})
			}
		}
		if w.known { // what has become of its slices may be what it waits for
			add(says("looks"), func(n *modelState) { n.acts(i, m.keeper(n, i), w.last.chunk(), nil) })
		}
	case landed:
		add(says("hears that it wrote"), func(n *modelState) {
			n.durable = n.cur // an answer comes when the write is as durable as the store makes it
			m.hears(n, i, w.flight.record(), nil)
		})
	case refusedIt:
		add(says("hears of a conflict"), func(n *modelState) {
			m.hears(n, i, store.Record{}, &store.ConflictError{Current: n.cur.record()})
		})
	}
	if w.wait == gone || w.wait != idle && s.left.losses > 0 {
		add(says("hears nothing"), func(n *modelState) {
			if w.wait != gone {
				n.left.losses--
			}
			m.hears(n, i, store.Record{}, driver.Unknown(modelKey, errors.New("no answer")))
		})
	}
}

// send has worker i send the write that it wants, if it wants one.
func (m *model) send(s *modelState, i int, what string, add func(string, func(*modelState))) {
	n := s.copy()
	k := m.keeper(n, i)
	var rec *store.Record
	m.st.put = func(r store.Record) (store.Record, error) {
		rec = &r
		return store.Record{}, driver.Unknown(modelKey, errors.New("not yet"))
	}
	_, _ = k.write(context.Background(), n.workers[i].last.chunk()) // the answer comes in a later step
	if rec == nil {
		return
	}
	add(what, func(n *modelState) {
		w := &n.workers[i]
		w.wait, w.flight = sent, written{base: w.last.version, token: rec.Token, data: string(rec.Data)}
		n.drift = append(n.drift, w.flight)
	})
}

// hears gives worker i the answer to its write.
func (m *model) hears(n *modelState, i int, rec store.Record, err error) {
	k := m.keeper(n, i)
	m.st.put = func(store.Record) (store.Record, error) { return rec, err }
	c, err := k.write(context.Background(), n.workers[i].last.chunk())
	n.acts(i, k, c, err)
}

// one is a strategy of one move.
type one Move

func (m one) Plan(*State) []Move { return []Move{Move(m)} }

// assign has the assigner send every proposal that it could make of what it reads, and what it does of its own.
func (m *model) assign(s *modelState, add func(string, func(*modelState))) {
	closed := map[string]bool{}
	for _, c := range s.closed {
		closed[c] = true
	}
	var members []member
	for _, w := range s.workers {
		if !closed[w.session] {
			members = append(members, member{Member: shardmap.Member{Session: w.session, Capacity: 1, Leaving: w.leaving}})
		}
	}
	seen := map[string]bool{}
	for j := range s.cur.chunk().Slices {
		for to := range members {
			p := &picture{
				space: modelSpace, members: members, chunks: []*shardmap.Chunk{s.cur.chunk()}, closed: closed, wall: modelWall,
				loads: newLoads(1), ttl: m.m.TTL(), next: map[int]*shardmap.Chunk{},
			}
			p.loads.follow(p.chunks, p.ttl, p.wall)
			p.decide(one{Slice: j, To: to})
			c := p.next[0]
			if c == nil {
				continue
			}
			w := s.cur.write(c)
			if seen[w.data] {
				continue
			}
			seen[w.data] = true
			add(fmt.Sprintf("the assigner gives %d to %s", j, members[to].Session), func(n *modelState) {
				n.left.proposals--
				n.drift = append(n.drift, w)
			})
		}
	}
}

// check returns an error if a state must not be, and takes down who acts under which token.
func (s *modelState) check() error {
	for p, key := range modelKeys {
		by := ""
		for _, w := range s.workers {
			for _, h := range w.held {
				if w.over || !h.owned || key < h.from || key > h.to {
					continue
				}
				if by != "" {
					return fmt.Errorf("key %x: %s acts as %s beside %s", key, w.session, h.id, by)
				}
				by = w.session + " as " + h.id
				holder := fmt.Sprintf("%s %x %x", w.session, h.from, h.to)
				if m := s.marks[p]; h.token < m.token || h.token == m.token && holder != m.holder {
					return fmt.Errorf("key %x: %s acts under token %d after %s under token %d", key, holder, h.token, m.holder, m.token)
				}
				s.marks[p] = modelMark{h.token, holder}
			}
		}
	}
	return nil
}

// begin returns the first state of a scope: the first worker owns both slices.
func (m *model) begin(scope modelScope) *modelState {
	s := &modelState{left: scope}
	for i := range s.workers {
		s.workers[i].session = modelSessions[i]
	}
	c := s.cur.chunk()
	for i := range c.Slices {
		if err := c.Give(i, "", modelSessions[0], nil, modelWall); err != nil {
			panic(err)
		}
	}
	s.drift = append(s.drift, s.cur.write(c))
	s.land(0, s.drift[0])
	k := m.keeper(s, 0)
	first, err := k.load(context.Background())
	s.acts(0, k, first, err)
	s.durable = s.cur
	return s
}

// search visits the states of a scope, the nearest first, and returns how many there are, and how the first that must not be comes
// about.
func (m *model) search(scope modelScope, limit int) (visited int, complete bool, err error) {
	type node struct {
		*modelState
		from int
		what string
	}
	seed := maphash.MakeSeed()
	seen := map[uint64]bool{}
	all := []node{{m.begin(scope), -1, "at first"}}
	for at := 0; at < len(all); at++ {
		for _, n := range m.next(all[at].modelState) {
			err := n.check()
			if err != nil {
				path := []string{n.what}
				for i := at; i >= 0; i = all[i].from {
					path = append(path, all[i].what)
				}
				slices.Reverse(path)
				return len(all), false, fmt.Errorf("%w:\n  %s", err, strings.Join(path, "\n  "))
			}
			h := maphash.String(seed, n.key())
			if seen[h] {
				continue
			}
			seen[h] = true
			if len(all) == limit {
				return len(all), false, nil
			}
			all = append(all, node{n.modelState, at, n.what})
		}
		all[at].modelState = nil
	}
	return len(all), true, nil
}

// No state of any scope has two workers that act on one key, or a token that doesn't rise. The nearest 30,000 of each are visited, and
// with LEASEHOLD_SHARD_STATES, as scripts/proof has it, that many. The race detector finds nothing in one goroutine.
func TestModel(t *testing.T) {
	m := newModel(t)
	most := 30_000
	if raceDetector {
		most = 3000
	}
	if text := os.Getenv("LEASEHOLD_SHARD_STATES"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil {
			t.Fatalf("LEASEHOLD_SHARD_STATES=%s: %v", text, err)
		}
	}
	for _, scope := range modelScopes {
		t.Run(scope.name, func(t *testing.T) {
			began := time.Now()
			n, complete, err := m.search(scope, most)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d states, all of them: %t, %v", n, complete, time.Since(began))
			if n < 1000 {
				t.Error("too few")
			}
		})
	}
}

// Without any one of the rules, a state is found that must not be. The rules of clocks and of the assigner's look at sessions aren't
// in the model: the simulator notices those.
func TestModelNoticesEachRule(t *testing.T) {
	defer func() { _ = seeded.SwitchOn("") }()
	m := newModel(t)
	for _, rule := range seeded.ShardModelRules {
		t.Run(string(rule), func(t *testing.T) {
			if err := seeded.SwitchOn(string(rule)); err != nil {
				t.Skip(err)
			}
			for _, scope := range modelScopes {
				if scope.durable != (rule == seeded.RuleShardPushNewer) {
					continue // it would take minutes, and find nothing
				}
				if n, _, err := m.search(scope, 400_000); err != nil {
					t.Logf("%s, after %d states: %v", scope.name, n, err)
					return
				}
			}
			t.Error("nothing notices that it is gone")
		})
	}
}
