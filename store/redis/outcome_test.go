package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// raw returns a client of the tests' own.
func raw(t testing.TB, srv *servers.Server) *goredis.Client {
	t.Helper()
	client := goredis.NewClient(options(t, srv, srv.Addr))
	t.Cleanup(func() { client.Close() })
	return client
}

func do(t testing.TB, client *goredis.Client, args ...any) any {
	t.Helper()
	v, err := client.Do(t.Context(), args...).Result()
	if err != nil {
		t.Fatal(args, err)
	}
	return v
}

// warm has the server know all scripts.
func warm(t testing.TB, s store.Store) {
	t.Helper()
	rec := storetest.MustPut(t, s, held("warm", 1))
	_, err := s.Get(t.Context(), "warm")
	if err := errors.Join(err, s.Delete(t.Context(), "warm", rec.Version)); err != nil {
		t.Fatal(err)
	}
}

// TestAWriteIsNotSentTwice: the answer to the first copy is lost, and the client would send a second one, to which the server
// answers that there is nothing to delete, or another version.
func TestAWriteIsNotSentTwice(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	opts := options(t, srv, network.Addr)
	opts.MaxRetries = 10
	prefix := newPrefix()
	opened, err := openOwner(opts, Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	direct := mustOpen(t, srv, srv.Addr, Options{Prefix: prefix})
	warm(t, direct) // else the answer that is lost is that the script isn't known
	for name, write := range map[string]func(store.Record) error{
		"Delete": func(rec store.Record) error { return opened.Delete(t.Context(), rec.Key, rec.Version) },
		"Put":    func(rec store.Record) error { _, err := opened.Put(t.Context(), rec); return err },
	} {
		rec := storetest.MustPut(t, opened, held(name, 1))
		network.SwallowReplies(true)
		ended := make(chan error, 1)
		go func() { ended <- write(rec) }()
		if _, err := direct.Wait(t.Context(), name, rec.Version); err != nil {
			t.Fatal(err)
		}
		network.Reset() // should the answer not be at the proxy yet
		network.Heal()
		if err := <-ended; !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("%s, which happened, and whose answer was lost: %v, want an unknown outcome", name, err)
		}
	}
}

// TestWhatWasNeverSentIsNotDone: a write whose context ended while its connection was being made is not done, and never will
// be.
func TestWhatWasNeverSentIsNotDone(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	s := mustOpen(t, srv, network.Addr, Options{Prefix: newPrefix()})
	network.Cut()
	cause := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, cause)
	defer cancel()
	_, err := s.Put(ctx, held("k", 1))
	if !errors.Is(err, cause) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("%v, want the cause, and a known outcome", err)
	}
	network.Heal()
	if err := s.Close(); err != nil { // waits for what was left behind
		t.Fatal(err)
	}
	direct := mustOpen(t, srv, srv.Addr, s.opts)
	if _, err := direct.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it was reported as not done: %v", err)
	}
	// Refused before anything was sent.
	network.Refuse()
	other := mustOpen(t, srv, network.Addr, s.opts)
	if _, err := other.Put(t.Context(), held("k", 1)); err == nil || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("refused: %v", err)
	}
}

// slow is a hook that holds commands up, whatever becomes of their contexts.
type slow struct{ gate chan struct{} }

func (slow) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (h slow) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		<-h.gate
		return next(context.WithoutCancel(ctx), cmd)
	}
}

func (slow) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// TestWhatWasGivenUpIsNeverSent: a client that comes to send a command late finds that it was reported as not done.
func TestWhatWasGivenUpIsNeverSent(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	client := raw(t, srv)
	hook := slow{make(chan struct{})}
	client.AddHook(hook)
	s, err := New(client, Options{Prefix: newPrefix()})
	if err != nil {
		t.Fatal(err)
	}
	direct := mustOpen(t, srv, srv.Addr, s.opts)
	warm(t, direct)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Put(ctx, held("k", 1)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("%v, want the cause, and a known outcome", err)
	}
	close(hook.gate)
	if err := s.Close(); err != nil { // waits for what was left behind
		t.Fatal(err)
	}
	if _, err := direct.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it was reported as not done: %v", err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the connection that the command was half written to: %v", err)
	}
}

// TestScriptsAreSentAgain: a server that was restarted, or told to, has forgotten them.
func TestScriptsAreSentAgain(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	client := raw(t, srv)
	s := mustOpen(t, srv, srv.Addr, Options{Prefix: newPrefix()})
	forget := func() { do(t, client, "script", "flush") }
	forget()
	rec := storetest.MustPut(t, s, held("k", 1))
	forget()
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	forget()
	rec = storetest.MustPut(t, s, rec)
	forget()
	n := 0
	for _, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("List yielded %d", n)
	}
	changed := make(chan error, 1)
	go func() { _, err := s.Wait(t.Context(), "k", rec.Version); changed <- err }()
	time.Sleep(100 * time.Millisecond) // so that it waits, as a rule
	forget()
	if err := s.Delete(t.Context(), "k", rec.Version); err != nil {
		t.Error(err)
	}
	if err := <-changed; err != nil {
		t.Error(err)
	}
}

// TestRowsOfOthersAreLeftAlone: what can't be read is an error that names the key, and stays as it is.
func TestRowsOfOthersAreLeftAlone(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	client := raw(t, srv)
	prefix := newPrefix()
	s := mustOpen(t, srv, srv.Addr, Options{Prefix: prefix, ClockStep: time.Millisecond})
	storetest.MustPut(t, s, held("good", 1))
	do(t, client, "set", prefix+"string", "x")
	do(t, client, "rpush", prefix+"list", "x")
	do(t, client, "hset", prefix+"hash", "a", "b")
	do(t, client, "hset", prefix+"no record", "version", "v")
	do(t, client, "hset", prefix+"no version", "record", `{"v":1,"token":0}`)
	do(t, client, "hset", prefix+"newer", "version", "v", "record", `{"v":9}`)
	do(t, client, "hset", prefix+"tab\there", "version", "v", "record", `{"v":1,"token":0}`)
	do(t, client, "hset", prefix+"no time", "version", "v", "record", `{"v":1,"token":0}`)
	do(t, client, "hset", prefix+"odd time", "version", "v", "record", `{"v":1,"token":0}`, "written", "soon")
	do(t, client, "hset", prefix+"future", "version", "v", "record", `{"v":1,"token":0}`, "written", "99999999999999999")
	do(t, client, "hset", prefix+"overflow", "version", "v", "record", `{"v":1,"token":0}`, "written", "-99999999999999999999")
	before := do(t, client, "dbsize")
	corrupt, fine := 0, 0
	for rec, err := range s.List(t.Context(), "") {
		switch {
		case err == nil:
			fine++
			if rec.Key != "good" && rec.Age != 0 {
				t.Errorf("%s: Age %v", rec.Key, rec.Age)
			}
		case errors.Is(err, store.ErrCorrupt):
			corrupt++
		default:
			t.Error(err)
		}
	}
	if corrupt != 7 || fine != 5 {
		t.Errorf("%d can't be read and %d can, want 7 and 5", corrupt, fine)
	}
	for _, key := range []string{"string", "list", "hash", "no record", "no version", "newer"} {
		_, getErr := s.Get(t.Context(), key)
		_, createErr := s.Put(t.Context(), held(key, 1))
		other := held(key, 1)
		other.Version = "other"
		_, putErr := s.Put(t.Context(), other)
		_, waitErr := s.Wait(t.Context(), key, "other")
		for what, err := range map[string]error{
			"Get": getErr, "create": createErr, "Put": putErr, "Wait": waitErr, "Delete": s.Delete(t.Context(), key, "other"),
		} {
			if !errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrUnknownOutcome) {
				t.Errorf("%s of %s: %v", what, key, err)
			}
		}
	}
	if after := do(t, client, "dbsize"); after != before {
		t.Errorf("%v keys, there were %v", after, before)
	}
	if v := do(t, client, "hgetall", prefix+"hash"); len(v.(map[any]any)) != 1 {
		t.Errorf("somebody's hash became %v", v)
	}
}
