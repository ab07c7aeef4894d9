package chapter9_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/examples/chapter9"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

func TestMain(m *testing.M) { os.Exit(servers.Main(m).Run()) }

// services are real servers, which the tests share.
var services = map[string]func(t *testing.T) chapter9.Service{
	"etcd": func(t *testing.T) chapter9.Service {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{servers.Etcd(t, servers.Shared()).URL}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return chapter9.Etcd{Client: client}
	},
	"consul": func(t *testing.T) chapter9.Service {
		client, err := api.NewClient(&api.Config{Address: servers.Consul(t, servers.Shared()).Addr})
		if err != nil {
			t.Fatal(err)
		}
		return chapter9.Consul{Client: client}
	},
	"zookeeper": func(t *testing.T) chapter9.Service {
		return chapter9.ZooKeeper{Servers: []string{servers.ZooKeeper(t, servers.Shared()).Addr}}
	},
}

const ttl = 2 * time.Second

// onEach runs a step on each service, under a key of its own. Zookeeper's paths begin with a slash,
// which the others take, too, but for Consul.
func onEach(t *testing.T, step func(ctx context.Context, t *testing.T, s chapter9.Service, key string)) {
	t.Helper()
	for name, service := range services {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := "/" + t.Name()[:len(t.Name())-len(name)-1]
			if name == "consul" {
				key = key[1:]
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			step(ctx, t, service(t), key)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants fails unless err is that one.
func wants(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", what, err, want)
	}
}

func TestCompareAndSwap(t *testing.T) {
	onEach(t, func(ctx context.Context, t *testing.T, s chapter9.Service, key string) {
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				switch _, err := s.Create(ctx, key, fmt.Sprint("owner-", i), 10*time.Second); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, chapter9.ErrHeld):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d of 8 have the lock, want 1", won.Load())
		}
	})
}

// Whoever sleeps comes late, by half a pause on average. Whoever watches comes at once.
func TestWaiting(t *testing.T) {
	onEach(t, func(ctx context.Context, t *testing.T, s chapter9.Service, key string) {
		const pause = 3 * time.Second
		handover := func(wait func(chapter9.Service) (chapter9.Held, error)) time.Duration {
			h, err := s.Create(ctx, key, "a", 10*time.Second)
			must(t, err)
			type result struct {
				h   chapter9.Held
				err error
				at  time.Time
			}
			got := make(chan result, 1)
			tries := tried{s, make(chan struct{}, 1)}
			go func() {
				h, err := wait(tries)
				got <- result{h, err, time.Now()}
			}()
			<-tries.failed
			released := time.Now()
			must(t, chapter9.UnlockVersion(ctx, s, h))
			r := <-got
			must(t, r.err)
			if r.h.Version <= h.Version {
				t.Errorf("version %d came after %d", r.h.Version, h.Version)
			}
			must(t, chapter9.UnlockVersion(ctx, s, r.h))
			return r.at.Sub(released)
		}
		sleep := handover(func(s chapter9.Service) (chapter9.Held, error) {
			return chapter9.LockBySleep(ctx, s, key, "b", 10*time.Second, pause)
		})
		watch := handover(func(s chapter9.Service) (chapter9.Held, error) {
			return chapter9.LockByWatch(ctx, s, key, "b", 10*time.Second)
		})
		t.Logf("handed over after %v by sleep, %v by watch", sleep.Round(time.Millisecond), watch.Round(time.Millisecond))
		if watch >= sleep {
			t.Errorf("watching took %v, and sleeping %v", watch, sleep)
		}
	})
}

// tried says when the first try has failed.
type tried struct {
	chapter9.Service
	failed chan struct{}
}

func (s tried) Create(ctx context.Context, key, owner string, ttl time.Duration) (chapter9.Held, error) {
	h, err := s.Service.Create(ctx, key, owner, ttl)
	if err != nil {
		select {
		case s.failed <- struct{}{}:
		default:
		}
	}
	return h, err
}

// owners counts who believes to have the lock: a's term has ended while a was paused, b has the lock, a
// wakes up and unlocks, and c tries.
func owners(ctx context.Context, t *testing.T, s chapter9.Service, key string, unlock func(a chapter9.Held) error) (got []string, unlocked error) {
	t.Helper()
	a, err := s.Create(ctx, key, "a", ttl)
	must(t, err)
	must(t, s.End(ctx, a)) // a is paused for longer than its TTL
	b, err := chapter9.LockByWatch(ctx, s, key, "b", 30*time.Second)
	must(t, err)
	if b.Version <= a.Version {
		t.Errorf("version %d came after %d", b.Version, a.Version)
	}
	unlocked = unlock(a) // a wakes up, and is done
	got = []string{"b"}  // nobody has told b anything
	if _, err := s.Create(ctx, key, "c", 30*time.Second); err == nil {
		got = append(got, "c")
	} else if !errors.Is(err, chapter9.ErrHeld) {
		t.Fatal(err)
	}
	return got, unlocked
}

func TestUnlockWithoutVersionMakesTwoOwners(t *testing.T) {
	onEach(t, func(ctx context.Context, t *testing.T, s chapter9.Service, key string) {
		got, err := owners(ctx, t, s, key, func(chapter9.Held) error { return chapter9.Unlock(ctx, s, key) })
		must(t, err)
		if !slices.Equal(got, []string{"b", "c"}) {
			t.Errorf("owners: %v, want the bug: b and c", got)
		}
	})
}

func TestVersionedUnlockMakesOne(t *testing.T) {
	onEach(t, func(ctx context.Context, t *testing.T, s chapter9.Service, key string) {
		got, err := owners(ctx, t, s, key, func(a chapter9.Held) error { return chapter9.UnlockVersion(ctx, s, a) })
		wants(t, "a's late unlock", err, chapter9.ErrLost)
		if !slices.Equal(got, []string{"b"}) {
			t.Errorf("owners: %v, want b alone", got)
		}
	})
}

// A version that restarts tells no terms apart: ZooKeeper's number of a znode does, so the unlock of a
// version has the bug again if the znode's name is the same.
func TestAZnodesVersionRestarts(t *testing.T) {
	server := servers.ZooKeeper(t, servers.Shared())
	conn, events, err := zk.Connect([]string{server.Addr}, 10*time.Second, zk.WithLogInfo(false))
	must(t, err)
	defer conn.Close()
	go func() {
		for range events {
		}
	}()
	for _, owner := range []string{"a", "b"} {
		_, err := conn.Create("/restarts", []byte(owner), 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		_, stat, err := conn.Get("/restarts")
		must(t, err)
		if stat.Version != 0 {
			t.Errorf("%s has version %d", owner, stat.Version)
		}
		must(t, conn.Delete("/restarts", 0)) // what a would send late deletes b's
	}
}

// The loop keeps the lock for longer than its TTL, and tells of the loss when an operator deletes it.
func TestRenewableLock(t *testing.T) {
	onEach(t, func(ctx context.Context, t *testing.T, s chapter9.Service, key string) {
		attempt := 0
		stalltest.Run(t, func(t testing.TB) {
			attempt++
			renewableLock(ctx, t, s, fmt.Sprint(key, "-", attempt))
		})
	})
}

func renewableLock(ctx context.Context, t testing.TB, s chapter9.Service, key string) {
	t.Helper()
	h, err := s.Create(ctx, key, "a", ttl)
	must(t, err)
	lost := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		chapter9.Keep(ctx, clock.System(), s, h, ttl, func(err error) { lost <- err })
	}()
	select {
	case err := <-lost:
		t.Fatal(err)
	case <-time.After(2 * ttl):
	}
	_, err = s.Create(ctx, key, "b", ttl)
	wants(t, "after two TTLs", err, chapter9.ErrHeld)
	removed := time.Now()
	must(t, s.Remove(ctx, key))
	wants(t, "handleLockLost", <-lost, chapter9.ErrLost)
	t.Logf("handleLockLost was called %v after the loss", time.Since(removed).Round(time.Millisecond))
	<-ended
}

// The loop gives up by its own clock, before the TTL is over, whether no answer comes or refusals do.
func TestTheLoopGivesUpInTime(t *testing.T) {
	for name, s := range map[string]chapter9.Service{"no answer": deaf{}, "refusals": refusing{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const ttl = 10 * time.Second
				c := clocktest.New(0)
				began, after := c.Now(), time.Duration(0)
				chapter9.Keep(t.Context(), c, s, chapter9.Held{}, ttl, func(error) { after = c.Now().Sub(began) })
				if want := ttl - ttl/5; after < want || after > want+time.Millisecond {
					t.Errorf("given up after %v, want %v", after, want)
				}
			})
		})
	}
}

// deaf is a service that doesn't answer, and refusing one that can't be reached.
type (
	deaf     struct{ chapter9.Service }
	refusing struct{ chapter9.Service }
)

func (deaf) Renew(ctx context.Context, _ chapter9.Held) error {
	<-ctx.Done()
	return ctx.Err()
}

func (refusing) Renew(context.Context, chapter9.Held) error { return errors.New("connection refused") }

// A worker that is paused between its look at the lock and its write is refused by the resource. A
// resource that doesn't look lets the late write through.
func TestDoubleCheck(t *testing.T) {
	onEach(t, func(ctx context.Context, t *testing.T, s chapter9.Service, key string) {
		var checked, believing chapter9.Resource
		a, err := s.Create(ctx, key, "a", ttl)
		must(t, err)
		err = chapter9.Work(ctx, s, a, &checked, "a's", func() { // the pause
			must(t, s.End(ctx, a))
			b, err := chapter9.LockByWatch(ctx, s, key, "b", 30*time.Second)
			must(t, err)
			must(t, chapter9.Work(ctx, s, b, &checked, "b's", func() {}))
			believing.Unchecked("b's")
		})
		believing.Unchecked("a's")
		wants(t, "a's late work", err, chapter9.ErrLost)
		if !slices.Equal(checked.Done, []string{"b's"}) {
			t.Errorf("the resource that looks has done %v", checked.Done)
		}
		if !slices.Equal(believing.Done, []string{"b's", "a's"}) {
			t.Errorf("the resource that believes has done %v", believing.Done)
		}
	})
}

func ExampleAvailable() {
	fmt.Printf("1 machine of 99 %%:  %.4f %%\n", 100*chapter9.Available(1, 1, 0.99))
	fmt.Printf("any 1 of 3:         %.4f %%\n", 100*chapter9.Available(3, 1, 0.99))
	fmt.Printf("a quorum, 2 of 3:   %.4f %%\n", 100*chapter9.Available(3, 2, 0.99))
	fmt.Printf("a quorum, 3 of 5:   %.4f %%\n", 100*chapter9.Available(5, 3, 0.99))
	fmt.Printf("2 minutes each day:  %.2f %%\n", 100*(1-2.0/(24*60)))
	fmt.Printf("2 minutes each hour: %.2f %%\n", 100*(1-2.0/60))
	// Output:
	// 1 machine of 99 %:  99.0000 %
	// any 1 of 3:         99.9999 %
	// a quorum, 2 of 3:   99.9702 %
	// a quorum, 3 of 5:   99.9990 %
	// 2 minutes each day:  99.86 %
	// 2 minutes each hour: 96.67 %
}
