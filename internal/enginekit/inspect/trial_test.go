package inspect

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/memory"
)

var errRefused = errors.New("refused")

// server is a store of which a test breaks a part.
type server struct {
	*memory.Store
	broken string // the call that is refused
	puts   int
	nth    int    // the Put that is refused, from 1
	lax    string // the writes that are carried out whatever is stored: of "" or of an old version
	deaf   bool   // it tells no Wait of a change
}

func (s *server) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if s.puts++; s.puts == s.nth {
		return store.Record{}, errRefused
	}
	stored, err := s.Store.Put(ctx, rec)
	if errors.Is(err, store.ErrConflict) && (s.lax == "create" && rec.Version == "" || s.lax == "change" && rec.Version != "") {
		now, err := s.Get(ctx, rec.Key)
		if err != nil {
			return now, err
		}
		rec.Version = now.Version
		return s.Store.Put(ctx, rec)
	}
	return stored, err
}

func (s *server) Get(ctx context.Context, key string) (store.Record, error) {
	if s.broken == "get" {
		return store.Record{}, errRefused
	}
	return s.Store.Get(ctx, key)
}

func (s *server) Delete(ctx context.Context, key, version string) error {
	if s.broken == "delete" {
		return errRefused
	}
	return s.Store.Delete(ctx, key, version)
}

func (s *server) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	if s.broken == "list" {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, errRefused) }
	}
	return s.Store.List(ctx, prefix)
}

func (s *server) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if s.broken == "wait" {
		return store.Record{}, errRefused
	}
	if s.deaf {
		<-ctx.Done()
		return store.Record{}, context.Cause(ctx)
	}
	return s.Store.Wait(ctx, key, version)
}

// confirms is a server whose reads are confirmed by a write.
type confirms struct{ *server }

func (c confirms) Confirm(ctx context.Context, key string) (store.Record, error) {
	if c.broken == "confirm" {
		return store.Record{}, errRefused
	}
	return c.Store.Get(ctx, key)
}

// A trial finds whatever is refused, and leaves nothing behind.
func TestATrialFinds(t *testing.T) {
	const all = "created, read, confirmed, looked at, waited for, changed, listed, deleted"
	for name, c := range map[string]struct {
		server server
		ends   bool // the caller's context ends while the record is stored
		fails  string
		says   string
		left   int
	}{
		"nothing":                    {says: "a record under \"x\" was " + all},
		"no right to create":         {server: server{nth: 1}, fails: "permissions", says: "can't be created"},
		"no right to read":           {server: server{broken: "get"}, fails: "permissions", says: "can't be read"},
		"no right to confirm":        {server: server{broken: "confirm"}, fails: "permissions", says: "can't be confirmed"},
		"no right to watch":          {server: server{broken: "wait"}, fails: "permissions", says: "can't be waited for"},
		"it tells of no change":      {server: server{deaf: true}, fails: "permissions", says: "can't be waited for"},
		"a refusal while one waits":  {server: server{nth: 2}, fails: "permissions", says: "can't be waited for"},
		"no right to change":         {server: server{nth: 3}, fails: "permissions", says: "can't be changed"},
		"a refusal for want of room": {server: server{nth: 4}, fails: "permissions", says: "can't be changed"},
		"no right to list":           {server: server{broken: "list"}, fails: "permissions", says: "can't be listed"},
		"no right to delete":         {server: server{broken: "delete"}, fails: "permissions", says: "can't be deleted", left: 1},
		"it creates what is there":   {server: server{lax: "create"}, fails: "consistency", says: "another version"},
		"it heeds no version":        {server: server{lax: "change"}, fails: "consistency", says: "another version"},
		"the caller has gone":        {ends: true, fails: "permissions", says: "can't be looked at"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := c.server
				s.Store = memory.New(memory.Options{})
				defer s.Store.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				found := Trial{
					Store: confirms{&s}, Within: time.Second, Where: ` under "x"`, Reads: "reads", Advice: "grant it", Wait: true, List: true,
					Stored: func(ctx context.Context, key string) error {
						if _, err := s.Store.Get(ctx, key); err != nil {
							t.Error(err)
						}
						if c.ends {
							cancel()
						}
						return ctx.Err()
					},
				}.Run(ctx)
				i := slices.IndexFunc(found, func(f driver.Finding) bool { return f.Status != driver.StatusOK })
				switch {
				case c.fails == "" && (i >= 0 || len(found) != 2 || found[0].Detail != c.says || !strings.HasPrefix(found[1].Detail, "reads; ")):
					t.Errorf("%+v", found)
				case c.fails != "" && (i < 0 || found[i].What != c.fails || !strings.Contains(found[i].Detail, c.says) || found[i].Advice == ""):
					t.Errorf("%+v, want %s failed, and %q", found, c.fails, c.says)
				}
				left := 0
				for _, err := range s.Store.List(t.Context(), "") {
					if left++; err != nil {
						t.Error(err)
					}
				}
				if left != c.left {
					t.Errorf("%d records were left behind, want %d", left, c.left)
				}
			})
		})
	}
}

// Clocks that differ by more than the answer took, and a second, are worth a word.
func TestClock(t *testing.T) {
	for _, c := range []struct {
		offset, trip, step time.Duration
		want               driver.Status
		says               string
	}{
		{time.Second, 0, 0, driver.StatusOK, "1s from the one here"},
		{-1400 * time.Millisecond, 500 * time.Millisecond, 0, driver.StatusOK, "give or take 500ms"},
		{-1600 * time.Millisecond, 500 * time.Millisecond, time.Minute, driver.StatusWarn, "set by more than 1m0s"},
		{2 * time.Second, 0, 0, driver.StatusWarn, "2s"},
	} {
		f := Clock(c.offset, c.trip, c.step)
		if f.Status != c.want || !strings.Contains(f.Detail, c.says) || (f.Advice != "") != (c.want == driver.StatusWarn) {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}
