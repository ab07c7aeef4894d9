package dynamodb

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

// A write whose reply is lost is recognised: an update when it is sent again, a creation when it is looked for.
func TestLostReplyIsRecognised(t *testing.T) {
	for name, lost := range map[string]fault{
		"connection closed": {op: "PutItem", lose: true},
		"no answer in time": {op: "PutItem", hang: true},
		"fault inside":      {op: "PutItem", answer: says(500, "InternalServerError")},
		"broken answer":     {op: "PutItem", answer: func(w http.ResponseWriter) { _, _ = w.Write([]byte("{")) }},
		"a proxy's answer":  {op: "PutItem", answer: func(w http.ResponseWriter) { http.Error(w, "<html>", http.StatusBadGateway) }},
	} {
		t.Run(name, func(t *testing.T) {
			f, table := testFront(t)
			clk := clocktest.New(0)
			if lost.hang {
				lost.after = func() { clk.Jump(patient) }
			}
			s := testOpen(t, testClient(t, f.URL), table, Options{Clock: clk})
			rec := store.Record{Key: "k"}
			for _, step := range []string{"create", "update", "update after two"} {
				faults := []fault{lost}
				if step == "update after two" {
					faults = lost.times(2)
				}
				f.do(faults...)
				next := held("k", rec.Token+1)
				next.Version = rec.Version
				written, err := s.Put(t.Context(), next)
				if err != nil {
					t.Fatalf("%s: %v", step, err)
				}
				want := len(faults) + 1
				if step == "create" {
					want = 1
				}
				if n := f.requests("PutItem"); n != want {
					t.Errorf("%s: %d writes, want %d", step, n, want)
				}
				if rec, err = s.Get(t.Context(), "k"); err != nil || rec.Version != written.Version || rec.Token != next.Token {
					t.Errorf("%s: stored is %+v, %v, and Put returned version %s", step, rec, err, written.Version)
				}
			}
		})
	}
}

// So it is when the SDK sends it again by itself.
func TestRetryOfTheSDKIsRecognised(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, stubborn{testClient(t, f.URL)}, table, Options{})
	f.do(fault{op: "PutItem", lose: true})
	rec, err := s.Put(t.Context(), held("k", 1))
	if err != nil || f.requests("PutItem") != 2 {
		t.Fatalf("%v, after %d requests; want 2, the second made by the SDK", err, f.requests("PutItem"))
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Errorf("%+v, %v", got, err)
	}
}

// When somebody else has written before it is sent again, nobody can tell whether the first attempt was carried out.
func TestLostReplyThenOverwritten(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	other := testOpen(t, testClient(t, f.target), table, Options{})
	overwrite := func() {
		rec, err := store.Load(t.Context(), other, "k")
		if err == nil {
			rec.Token, rec.Owner, rec.TTL = rec.Token+1, "other", time.Minute
			_, err = other.Put(t.Context(), rec)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for name, lost := range map[string]fault{
		"carried out":     {op: "PutItem", lose: true, after: overwrite},
		"not carried out": {op: "PutItem", lose: true, unsent: true, after: overwrite},
	} {
		t.Run(name, func(t *testing.T) {
			rec, err := store.Load(t.Context(), s, "k")
			if err != nil {
				t.Fatal(err)
			}
			f.do(lost)
			next := held("k", rec.Token+1)
			next.Version = rec.Version
			_, err = s.Put(t.Context(), next)
			if !errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "k: ") {
				t.Errorf("%v, want an unknown outcome, and no conflict", err)
			}
			if err != nil && !strings.Contains(err.Error(), "EOF") {
				t.Errorf("%v: it doesn't say what became of the attempt that failed", err)
			}
			f.do()
			if current := new(store.ConflictError); !errors.As(putAt(t, s, next), &current) || current.Current.Owner != "other" {
				t.Errorf("a write that was sent once, for comparison: %+v", current)
			}
		})
	}
}

func putAt(t *testing.T, s *Store, rec store.Record) error {
	_, err := s.Put(t.Context(), rec)
	return err
}

// A deletion leaves nothing to recognise.
func TestLostReplyOfADelete(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	for name, lost := range map[string]struct {
		fault
		want error
	}{
		"carried out":     {fault{op: "DeleteItem", lose: true}, store.ErrUnknownOutcome},
		"not carried out": {fault{op: "DeleteItem", lose: true, unsent: true}, nil},
	} {
		rec := mustPut(t, s, held(name, 1))
		f.do(lost.fault)
		err := s.Delete(t.Context(), name, rec.Version)
		if !errors.Is(err, lost.want) || (lost.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", name, err, lost.want)
		}
		if _, err := s.Get(t.Context(), name); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: it is still there: %v", name, err)
		}
	}
}

// What stays without an answer is never called not done; what the server refuses is.
func TestOutcomesOfFailures(t *testing.T) {
	for name, c := range map[string]struct {
		fault    fault
		unknown  bool
		requests int
	}{
		"closed, always":          {fault{lose: true}, true, 8},
		"hangs, always":           {fault{hang: true, unsent: true}, true, 8},
		"fault inside, always":    {fault{unsent: true, answer: says(500, "InternalServerError")}, true, 8},
		"unavailable, always":     {fault{unsent: true, answer: says(503, "ServiceUnavailable")}, true, 8},
		"access denied":           {fault{unsent: true, answer: says(400, "AccessDeniedException")}, false, 1},
		"validation":              {fault{unsent: true, answer: says(400, "ValidationException")}, false, 1},
		"signature":               {fault{unsent: true, answer: says(403, "InvalidSignatureException")}, false, 1},
		"unheard-of refusal":      {fault{unsent: true, answer: says(400, "NovelException")}, false, 1},
		"throttled, always":       {fault{unsent: true, answer: says(400, "ThrottlingException")}, false, 8},
		"other Region, always":    {fault{unsent: true, answer: says(400, "ReplicatedWriteConflictException")}, false, 8},
		"a page of a proxy":       {fault{unsent: true, answer: func(w http.ResponseWriter) { http.Error(w, "no", http.StatusForbidden) }}, true, 8},
		"200 that isn't DynamoDB": {fault{unsent: true, answer: func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }}, true, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, table := testFront(t)
			var writes atomic.Int64
			opts := Options{OnRequest: func(r Request) {
				if r.Operation == "PutItem" {
					writes.Add(1)
				}
			}}
			if c.fault.hang { // until its time is over, which is at once
				clk := clocktest.New(0)
				opts.Clock, c.fault.after = clk, func() { clk.Jump(patient) }
			}
			s := testOpen(t, testClient(t, f.URL), table, opts)
			next := mustPut(t, testOpen(t, testClient(t, f.target), table, Options{}), held("k", 1))
			c.fault.op = "PutItem"
			f.do(c.fault.times(20)...)
			_, err := s.Put(t.Context(), next)
			if err == nil || errors.Is(err, store.ErrUnknownOutcome) != c.unknown {
				t.Errorf("%v, want unknown: %v", err, c.unknown)
			}
			if n := int(writes.Load()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
		})
	}
}

// A throttled request is made again, ever more slowly, and carried out once.
func TestThrottling(t *testing.T) {
	for _, code := range []string{"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			f, table := testFront(t)
			var throttled atomic.Int64
			s := testOpen(t, testClient(t, f.URL), table, Options{OnRequest: func(r Request) {
				if r.Err != nil {
					throttled.Add(1)
				}
			}})
			for _, op := range []string{"PutItem", "GetItem", "DeleteItem"} {
				throttled.Store(0)
				f.do(fault{op: op, unsent: true, answer: says(400, code)}.times(3)...)
				start := time.Now()
				var err error
				switch op {
				case "PutItem":
					_, err = s.Put(t.Context(), held("k", 1))
				case "GetItem":
					_, err = s.Get(t.Context(), "k")
				default:
					rec, _ := s.Get(t.Context(), "k")
					err = s.Delete(t.Context(), "k", rec.Version)
				}
				if err != nil || throttled.Load() != 3 || f.requests(op) != 4 {
					t.Errorf("%s: %v, throttled %d times in %d requests, want 3 in 4", op, err, throttled.Load(), f.requests(op))
				}
				const least = (50 + 100 + 200) * time.Millisecond / 2 // the halves that aren't left to chance
				if took := time.Since(start); took < least {
					t.Errorf("%s: took %v, want %v at least: it has to back off", op, took, least)
				}
			}
		})
	}
}

// Backing off ends with the context, and what was only throttled is not done.
func TestThrottlingIsBoundedByTheContext(t *testing.T) {
	f, table := testFront(t)
	errEnough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var throttled atomic.Int64
	const most = 3
	s := testOpen(t, testClient(t, f.URL), table, Options{OnRequest: func(r Request) {
		if r.Operation == "PutItem" && throttled.Add(1) == most { // between two attempts
			cancel(errEnough)
		}
	}})
	f.do(fault{op: "PutItem", unsent: true, answer: says(400, "ThrottlingException")}.times(100)...)
	_, err := s.Put(ctx, held("k", 1))
	if !errors.Is(err, errEnough) || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "throttled") {
		t.Errorf("%v, want the context's cause, a known outcome and the reason", err)
	}
	if n := f.requests("PutItem"); n != most {
		t.Errorf("%d requests, want none after the context has ended, with %d", n, most)
	}
}

// A conflict between the Regions of a global table in strong mode is tried again.
func TestReplicatedWriteConflict(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	f.do(fault{op: "PutItem", unsent: true, answer: says(400, "ReplicatedWriteConflictException")}.times(3)...)
	if _, err := s.Put(t.Context(), held("k", 1)); err != nil || f.requests("PutItem") != 4 {
		t.Errorf("%v after %d requests, want success after 4", err, f.requests("PutItem"))
	}
}

// A server that doesn't send the row which broke the condition is asked for it.
func TestMissingAllOld(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	stored := mustPut(t, s, held("k", 5))
	strip := fault{op: "PutItem", change: func(body map[string]any) { delete(body, "Item") }}
	empty := fault{op: "PutItem", change: func(body map[string]any) { body["Item"] = map[string]any{} }}
	for name, answer := range map[string]fault{"missing": strip, "empty": empty} {
		f.do(answer)
		var c *store.ConflictError
		if _, err := s.Put(t.Context(), held("k", 9)); !errors.As(err, &c) || c.Current.Version != stored.Version || c.Current.Token != 5 {
			t.Errorf("%s: %v, want a conflict with what is stored", name, err)
		}
		if f.requests("GetItem") != 1 {
			t.Errorf("%s: %d reads, want 1", name, f.requests("GetItem"))
		}
		// And one's own write is recognised by what was read.
		next := held("k", stored.Token)
		next.Version = stored.Version
		f.do(fault{op: "PutItem", lose: true}, answer)
		written, err := s.Put(t.Context(), next)
		if err != nil || f.requests("GetItem") != 1 {
			t.Fatalf("%s: %v after %d reads, want success after 1", name, err, f.requests("GetItem"))
		}
		stored = written
	}
	f.do()
	if _, err := s.Put(t.Context(), held("k", 9)); !errors.Is(err, store.ErrConflict) || f.requests("GetItem") != 0 {
		t.Errorf("%v after %d reads, want a conflict without one where the server sends the row", err, f.requests("GetItem"))
	}
}

// An item without attributes is none.
func TestEmptyItemIsAbsent(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	f.do(fault{op: "GetItem", change: func(body map[string]any) { body["Item"] = map[string]any{} }})
	if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}

// A request that was refused because this machine's clock is wrong is signed anew, by the server's time.
func TestWrongClockIsCorrected(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	server := time.Now().Add(time.Hour).UTC()
	f.do(fault{op: "PutItem", unsent: true, answer: func(w http.ResponseWriter) {
		w.Header().Set("Date", server.Format(http.TimeFormat))
		says(403, "InvalidSignatureException")(w)
	}})
	if _, err := s.Put(t.Context(), held("k", 1)); err != nil || f.requests("PutItem") != 2 {
		t.Fatalf("%v after %d requests, want success after 2", err, f.requests("PutItem"))
	}
	signed, err := time.Parse("20060102T150405Z", f.seen[1].Header.Get("X-Amz-Date"))
	if off := signed.Sub(server).Abs(); err != nil || off > time.Minute {
		t.Errorf("the second request was signed %v off the server's time, %v", off, err)
	}
}
