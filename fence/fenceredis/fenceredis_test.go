package fenceredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fenceredis"
	"github.com/leasehold/leasehold/fence/fencetest"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

func dial(t testing.TB, srv *servers.Server) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	opts.ReadTimeout = time.Minute // a script that takes long is not sent again
	client := redis.NewClient(opts)
	t.Cleanup(func() { client.Close() })
	return client
}

// register is a guarded resource: a list of the tokens of all writes.
type register struct {
	t      testing.TB
	client redis.UniversalClient
	guard  *fenceredis.Guard
	prefix string
}

func newRegister(t testing.TB) *register {
	t.Helper()
	r := &register{t: t, client: dial(t, servers.Redis(t, servers.Shared())), prefix: fmt.Sprintf("{%s/%d}", t.Name(), time.Now().UnixNano())}
	r.reopen()
	return r
}

func (r *register) reopen() {
	r.t.Helper()
	var err error
	if r.guard, err = fenceredis.New(r.client, fenceredis.Options{Prefix: r.prefix + "fence:"}); err != nil {
		r.t.Fatal(err)
	}
}

var push = fenceredis.NewScript(`return redis.call('RPUSH', KEYS[1], ARGV[1])`)

func (r *register) write(ctx context.Context, s fence.Sequencer) error {
	return r.guard.Run(ctx, s, push, []string{r.prefix + "log"}, s.Token.String()).Err()
}

func (r *register) written() (tokens []fence.Token) {
	r.t.Helper()
	all, err := r.client.LRange(r.t.Context(), r.prefix+"log", 0, -1).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, text := range all {
		token, err := fence.ParseToken(text)
		if err != nil {
			r.t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	return tokens
}

func TestStory(t *testing.T) {
	r := newRegister(t)
	fencetest.Story(t, r.write, fencetest.Options{Reopen: r.reopen, Written: r.written})
}

func TestRace(t *testing.T) {
	r := newRegister(t)
	fencetest.Race(t, r.write, r.written)
}

func TestCheckIsAGuard(t *testing.T) {
	r := newRegister(t)
	fencetest.Story(t, r.guard.Check, fencetest.Options{})
}

// The caller's script is what it was: its keys and arguments, from anywhere in it a value of any kind, and errors.
func TestCallersScript(t *testing.T) {
	r := newRegister(t)
	s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	for script, want := range map[string]string{
		`return {#KEYS, #ARGV, KEYS[1], KEYS[2], ARGV[1], ARGV[3]}`:          "[2 3 " + r.prefix + "a " + r.prefix + "b x z], <nil>",
		"if ARGV[2] == 'y' then\n  return 7\nend\nreturn 8 -- the last word": "7, <nil>",
		`return redis.call('GET', KEYS[1])`:                                  "<nil>, redis: nil",
		`return redis.status_reply('FINE')`:                                  "FINE, <nil>",
		`return redis.error_reply('MINE own error')`:                         "<nil>, MINE own error",
		`return redis.error_reply('FENCESTALE')`:                             "<nil>, ERR FENCESTALE",
		``:                                                                   "<nil>, redis: nil",
	} {
		got, err := r.guard.Run(t.Context(), s, fenceredis.NewScript(script), []string{r.prefix + "a", r.prefix + "b"}, "x", "y", "z").Result()
		if text := fmt.Sprintf("%v, %v", got, err); text != want || errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %s, want %s", script, text, want)
		}
	}
	args := make([]any, 20_000)
	for i := range args {
		args[i] = i
	}
	if n, err := r.guard.Run(t.Context(), s, fenceredis.NewScript(`return #ARGV`), nil, args...).Int(); err != nil || n != len(args) {
		t.Errorf("%d arguments, %v", n, err)
	}
}

// trips counts commands.
type trips struct{ n int }

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { h.n++; return next(ctx, cmd) }
}

// One round trip for each write, refused or not, once the server has the script; and one write of the mark for each new token.
func TestCost(t *testing.T) {
	r := newRegister(t)
	if err := r.write(t.Context(), fence.Sequencer{Name: "another", Holder: "a", Token: 1}); err != nil { // now the server has the script
		t.Fatal(err)
	}
	h := &trips{}
	r.client.AddHook(h)
	dirty := func() (n int) {
		for line := range strings.Lines(r.client.Info(t.Context(), "persistence").Val()) {
			if _, err := fmt.Sscanf(line, "rdb_changes_since_last_save:%d", &n); err == nil {
				return n
			}
		}
		t.Fatal("the server doesn't count its changes")
		return 0
	}
	expect := func(s fence.Sequencer, changes int, refused bool) {
		t.Helper()
		before := dirty()
		h.n = 0
		err := r.write(t.Context(), s)
		sent := h.n
		if got := dirty() - before; sent != 1 || got != changes || refused != errors.Is(err, fence.ErrStale) {
			t.Errorf("%v: %d round trips, %d changes, %v: want 1 and %d", s, sent, got, err, changes)
		}
	}
	for token := fence.Token(10); token < 13; token++ {
		s := fence.Sequencer{Name: "n", Holder: "a", Token: token}
		expect(s, 3, false) // the caller's own, and the two fields of the mark
		expect(s, 1, false)
		expect(s, 1, false)
		s.Holder = "b"
		expect(s, 0, true)
	}
}

// Numbers in Lua are floating point: the largest tokens must be told apart, and stored as they are.
func TestLargestTokens(t *testing.T) {
	r := newRegister(t)
	for i := range fence.Token(100) {
		token := fence.MaxToken - 99 + i
		if err := r.write(t.Context(), fence.Sequencer{Name: "n", Holder: "a", Token: token}); err != nil {
			t.Fatal(err)
		}
		err := r.write(t.Context(), fence.Sequencer{Name: "n", Holder: "a", Token: token - 1})
		var stale *fence.StaleError
		if !errors.As(err, &stale) || stale.Current != token {
			t.Errorf("%d after %d: %v", token-1, token, err)
		}
	}
}

func TestBadInput(t *testing.T) {
	r := newRegister(t)
	s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	for _, bad := range []fence.Sequencer{{Name: "n", Holder: "a"}, {Name: "n", Holder: "a", Token: fence.MaxToken + 1}, {Holder: "a", Token: 5}, {Name: "n", Token: 5}} {
		if err := r.write(t.Context(), bad); !errors.Is(err, fence.ErrMalformed) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	key := r.prefix + "fence:n"
	for _, fields := range [][]string{{"token", "x", "holder", "a"}, {"token", "nan", "holder", "a"}, {"token", "9007199254740992", "holder", "a"}, {"token", "3"}, {"holder", "a"}} {
		r.client.Del(t.Context(), key)
		r.client.HSet(t.Context(), key, fields)
		if err := r.write(t.Context(), s); err == nil || !strings.Contains(err.Error(), key+" is no mark") {
			t.Errorf("the mark is %q: %v", fields, err)
		}
	}
	r.client.Set(t.Context(), key, "text", 0)
	if err := r.write(t.Context(), s); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("the mark is no hash: %v", err)
	}
	if tokens := r.written(); len(tokens) != 0 {
		t.Errorf("written under %v", tokens)
	}
	if _, err := fenceredis.New(nil, fenceredis.Options{}); err == nil {
		t.Error("no client was taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.write(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// In a cluster the mark has to be in the slot of the keys; elsewhere the script is refused as a whole.
func TestCluster(t *testing.T) {
	_, bus, _ := strings.Cut(servers.FreeAddr(t), ":") // else it takes one of its own choice, which may be another server's
	srv := servers.Redis(t, servers.Set("cluster-enabled", "yes"), servers.Set("cluster-port", bus))
	if err := dial(t, srv).ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{srv.Addr}, ReadTimeout: time.Minute})
	t.Cleanup(func() { client.Close() })
	r := &register{t: t, client: client, prefix: "{billing}:"}
	for ctx := t.Context(); !strings.Contains(client.ClusterInfo(ctx).Val(), "cluster_state:ok"); {
		time.Sleep(10 * time.Millisecond)
	}
	r.reopen()
	fencetest.Story(t, r.write, fencetest.Options{Written: r.written})

	elsewhere, err := fenceredis.New(client, fenceredis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = elsewhere.Run(t.Context(), fence.Sequencer{Name: "n", Holder: "a", Token: 5}, push, []string{r.prefix + "log"}, 5).Err()
	if err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
		t.Errorf("a mark in another slot: %v", err)
	}
}

// What a failover loses: the mark of the newest term, with every write of it, so that the order is kept in what is left.
func TestFailoverLosesMarkAndWritesTogether(t *testing.T) {
	primary := servers.Redis(t)
	replica := servers.Redis(t, servers.ReplicaOf(primary))
	r := &register{t: t, client: dial(t, primary), prefix: "p:"}
	r.reopen()
	s := func(holder string, token fence.Token) fence.Sequencer {
		return fence.Sequencer{Name: "n", Holder: holder, Token: token}
	}
	if err := r.write(t.Context(), s("a", 5)); err != nil {
		t.Fatal(err)
	}
	for other := dial(t, replica); other.LLen(t.Context(), "p:log").Val() == 0; {
		time.Sleep(time.Millisecond)
	}
	// The replica is made the primary while the old one still takes writes.
	promoted := dial(t, replica)
	if err := promoted.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.write(t.Context(), s("b", 6)), r.write(t.Context(), s("b", 6))); err != nil {
		t.Fatal(err)
	}
	primary.Kill()
	r.client = promoted
	r.reopen()
	for _, c := range []struct {
		s  fence.Sequencer
		ok bool
	}{{s("a", 5), true}, {s("b", 6), true}, {s("a", 5), false}} {
		if err := r.write(t.Context(), c.s); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.s, err)
		}
	}
	if got := fmt.Sprint(r.written()); got != "[5 5 6]" {
		t.Errorf("after the failover the writes are %s", got)
	}
}
