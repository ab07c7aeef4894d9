package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// mustPutting returns the write of a record.
func mustPutting(t testing.TB, s *Store, rec store.Record) *write {
	t.Helper()
	w, err := s.putting(rec)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Of writes that are sent together each comes out as if it was sent alone, on a server that knows no script yet, too.
func TestWritesTogether(t *testing.T) {
	srv := servers.Redis(t)
	s := mustOpen(t, srv, srv.Addr, Options{Prefix: newPrefix()})
	client := raw(t, srv)
	old, stale := storetest.MustPut(t, s, held("changed", 1)), storetest.MustPut(t, s, held("stale", 1))
	current := storetest.MustPut(t, s, store.Record{Key: "stale", Version: stale.Version})
	gone, deleted := storetest.MustPut(t, s, held("gone", 1)), storetest.MustPut(t, s, held("deleted", 1))
	if err := s.Delete(t.Context(), "gone", gone.Version); err != nil {
		t.Fatal(err)
	}
	do(t, client, "set", s.opts.Prefix+"odd", "no hash")
	do(t, client, "script", "flush")
	for i, c := range []struct {
		w    *write
		want error
	}{
		{mustPutting(t, s, held("new", 1)), nil}, {mustPutting(t, s, stale), store.ErrConflict}, {mustPutting(t, s, old), nil},
		{s.deleting(gone.Key, gone.Version), store.ErrNotFound}, {s.deleting(deleted.Key, deleted.Version), nil}, {mustPutting(t, s, held("odd", 1)), store.ErrCorrupt},
	} {
		group := []*write{mustPutting(t, s, held(fmt.Sprint("before", i), 1)), c.w, mustPutting(t, s, held(fmt.Sprint("after", i), 1))}
		s.together(t.Context(), group)
		err := s.outcome(c.w)
		var conflict *store.ConflictError
		if !errors.Is(err, c.want) || errors.As(err, &conflict) && conflict.Current.Version != current.Version {
			t.Errorf("%s: %v, want %v", c.w.key, err, c.want)
		}
		for _, w := range []*write{group[0], group[2]} {
			if rec, getErr := s.Get(t.Context(), w.key); s.outcome(w) != nil || getErr != nil || rec.Version != w.version {
				t.Errorf("%s: %v; it is stored at %s, %v", w.key, s.outcome(w), rec.Version, getErr)
			}
		}
	}
	if _, err := s.Get(t.Context(), "deleted"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was deleted: %v", err)
	}
}

// What was sent together and not answered is unknown, all of it. What was never sent is not done.
func TestWritesTogetherWithoutAnswer(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	network, prefix := servers.Proxy(t, srv.Addr), newPrefix()
	opts := options(t, srv, network.Addr)
	opts.MaxRetries = 10
	opened, err := openOwner(opts, Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	s, direct := opened.(owner).Store, mustOpen(t, srv, srv.Addr, Options{Prefix: prefix})
	warm(t, direct)
	group := []*write{mustPutting(t, s, held("a", 1)), mustPutting(t, s, held("b", 1))}
	connected := mustPutting(t, s, held("connected", 1))
	if s.together(t.Context(), []*write{connected}); s.outcome(connected) != nil { // the client has connections of their own for them
		t.Fatal(s.outcome(connected))
	}
	network.SwallowReplies(true)
	ended := make(chan struct{})
	go func() { defer close(ended); s.together(t.Context(), group) }()
	for _, w := range group {
		if _, err := direct.Wait(t.Context(), w.key, ""); err != nil {
			t.Fatal(err)
		}
	}
	network.Reset() // should the answers not be at the proxy yet
	network.Heal()
	<-ended
	for _, w := range group {
		if err := s.outcome(w); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("%s, which happened, and whose answer was lost: %v, want an unknown outcome", w.key, err)
		}
	}
	network.Refuse()
	network.Reset()
	other := mustOpen(t, srv, network.Addr, Options{Prefix: prefix})
	group = []*write{mustPutting(t, other, held("c", 1)), mustPutting(t, other, held("d", 1))}
	other.together(t.Context(), group)
	for _, w := range group {
		if err := other.outcome(w); err == nil || errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("%s, which was never sent: %v", w.key, err)
		}
	}
}

// Writes that are asked for at the same time share requests, and whoever doesn't wait for the answer learns what is known.
func TestWritesAtTheSameTime(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	network, prefix := servers.Proxy(t, srv.Addr), newPrefix()
	s, direct := mustOpen(t, srv, network.Addr, Options{Prefix: prefix}), mustOpen(t, srv, srv.Addr, Options{Prefix: prefix})
	warm(t, direct)
	const writers = 40
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			rec := held(fmt.Sprint("k", i), 1)
			for range 5 {
				var err error
				if rec, err = s.Put(t.Context(), rec); err != nil {
					t.Error(err)
					return
				}
			}
			if got, err := direct.Get(t.Context(), rec.Key); err != nil || got.Version != rec.Version {
				t.Errorf("%s is stored at %s, %v, want %s", rec.Key, got.Version, err, rec.Version)
			}
		})
	}
	all.Wait()
	network.SwallowReplies(true)
	cause := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
	defer cancel()
	for i := range writers {
		all.Go(func() {
			_, err := s.Put(ctx, held(fmt.Sprint("lost", i), 1))
			if !errors.Is(err, cause) {
				t.Errorf("%v, want the context's cause", err)
			}
			if _, getErr := direct.Get(t.Context(), fmt.Sprint("lost", i)); getErr == nil && !errors.Is(err, store.ErrUnknownOutcome) {
				t.Errorf("lost%d is stored, and reported as %v", i, err)
			}
		})
	}
	all.Wait()
	network.Heal()
}

// pipes notes how much each pipeline asks for.
type pipes struct {
	Client
	mu    sync.Mutex
	bytes []int
}

func (p *pipes) Pipelined(ctx context.Context, fn func(goredis.Pipeliner) error) ([]goredis.Cmder, error) {
	cmds, err := p.Client.Pipelined(ctx, fn)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes = append(p.bytes, 0)
	for _, cmd := range cmds {
		for _, arg := range cmd.Args() {
			n := len(fmt.Sprint(arg))
			if b, ok := arg.([]byte); ok {
				n = len(b)
			}
			p.bytes[len(p.bytes)-1] += len(fmt.Sprintf("$%d\r\n\r\n", n)) + n
		}
	}
	return cmds, err
}

// What is too much for the server to read at once goes in several pipelines, and what is too large alone by itself.
func TestWritesTogetherAreSplit(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	client := &pipes{Client: raw(t, srv)}
	s, err := New(client, Options{Prefix: newPrefix()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	warm(t, s)
	var group []*write
	total := 0
	for i := range 60 {
		rec := held(fmt.Sprint("k", i), 1)
		rec.Data = make([]byte, 100*(i%7))
		if i == 30 {
			rec.Data = make([]byte, mostRead)
		}
		w := mustPutting(t, s, rec)
		group, total = append(group, w), total+w.size
	}
	s.together(t.Context(), group)
	for _, w := range group {
		if rec, err := s.Get(t.Context(), w.key); s.outcome(w) != nil || err != nil || rec.Version != w.version {
			t.Errorf("%s: %v; it is stored at %s, %v", w.key, s.outcome(w), rec.Version, err)
		}
	}
	large := 0
	for _, n := range client.bytes {
		if n > mostRead {
			large++
		}
	}
	if least := total / mostRead; large != 1 || len(client.bytes) < least || len(client.bytes) > 2*least {
		t.Errorf("of %d bytes in all pipelines of %v bytes: want some %d, and one larger than %d", total, client.bytes, least, mostRead)
	}
}
