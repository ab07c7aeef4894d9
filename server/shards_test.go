package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
)

// httpWorker is a worker of a space that has a session of the server, and nothing else.
type httpWorker struct {
	t     *testing.T
	s     *site
	space string
	api.Session
	seen string
}

func (s *site) worker(t *testing.T, space, name, more string) *httpWorker {
	t.Helper()
	w := &httpWorker{t: t, s: s, space: space}
	want(t, s.ask(t, "POST", "/v1/sessions", `{"ttl": 60}`, &w.Session), http.StatusCreated)
	body := fmt.Sprintf(`{"session": %q, "worker": %q, "address": %q%s}`, w.Session.Session, name, name+":80", more)
	var h api.ShardHolding
	want(t, s.ask(t, "POST", "/v1/shards/"+space+"/workers", body, &h, api.HeaderSecret, w.Secret), http.StatusCreated)
	return w
}

// step takes a step, and waits until there is something that it has not seen.
func (w *httpWorker) step(r api.ShardStepRequest) (h api.ShardHolding) {
	w.t.Helper()
	r.Seen, r.Wait = w.seen, new(api.Seconds)
	*r.Wait = api.Seconds(2e9)
	body, err := json.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	path := "/v1/shards/" + w.space + "/workers/" + url.PathEscape(w.Session.Session)
	want(w.t, w.s.ask(w.t, "PUT", path, string(body), &h, api.HeaderSecret, w.Secret), http.StatusOK)
	w.seen = h.Seen
	return h
}

// until takes steps until it has so many slices, none of which is to go, and stops what is to go.
func (w *httpWorker) until(n int) (h api.ShardHolding) {
	w.t.Helper()
	for r := (api.ShardStepRequest{}); w.t.Context().Err() == nil; {
		h = w.step(r)
		r.Stopped = stoppedOf(h)
		if len(r.Stopped) == 0 && len(h.Slices) == n {
			return h
		}
		if len(r.Stopped) > 0 {
			w.seen = ""
		}
	}
	w.t.Fatalf("%d slices, want %d", len(h.Slices), n)
	return h
}

func stoppedOf(h api.ShardHolding) map[string]fence.Token {
	all := map[string]fence.Token{}
	for _, p := range h.Slices {
		if p.Goes {
			all[p.Slice] = p.Token
		}
	}
	return all
}

// Workers in any language have parts of a space by a session and requests. The server assigns, since none of them can.
func TestShardWorkersOverHTTP(t *testing.T) {
	s := newSite(t, server.Options{})
	c, ctx := s.client(t, s.URL), t.Context()
	a := s.worker(t, "jobs", "a", `, "shards": ["0", "1", "2", "3"], "labels": {"size": "large"}`)
	all := a.until(4)
	seq, err := fence.ParseSequencer(all.Slices[0].Sequencer)
	if p := all.Slices[0]; err != nil || seq.Name != "jobs/"+p.Slice || seq.Token != p.Token || seq.Holder != a.Holder {
		t.Errorf("%+v has the sequencer %+v, %v", p, seq, err)
	}
	b := s.worker(t, "jobs", "b", "")
	for len(stoppedOf(all)) == 0 { // b is ready for what it is to get once it has seen that
		b.seen = ""
		b.step(api.ShardStepRequest{})
		all = a.step(api.ShardStepRequest{})
	}
	b.seen = ""
	if h := b.step(api.ShardStepRequest{}); len(h.Slices) != 0 {
		t.Errorf("b has %v, which a has not stopped", h.Slices)
	}
	a.until(2)
	b.until(2)

	if spaces, err := c.ShardSpaces(ctx); err != nil || len(spaces) != 1 || spaces[0].Name != "jobs" || spaces[0].Slices != 4 || spaces[0].Assigner == "" {
		t.Errorf("%+v, %v", spaces, err)
	}
	space, workers, err := c.ShardSpace(ctx, "jobs")
	if err != nil || space.Unowned != 0 || len(workers) != 2 || workers[0].Name != "a" || workers[0].Labels["size"] != "large" || workers[1].Slices != 2 {
		t.Errorf("%+v, %+v, %v", space, workers, err)
	}
	slices, err := c.ShardSlices(ctx, "jobs")
	if err != nil || len(slices) != 4 {
		t.Fatalf("%+v, %v", slices, err)
	}
	if one, err := c.ShardLookup(ctx, "jobs", "3"); err != nil || one.ID != "3" || one.Address == "" || one.Holder == "" || one.Token == 0 {
		t.Errorf("%+v, %v", one, err)
	}
	if changes, err := c.ShardHistory(ctx, "jobs"); err != nil || len(changes) < 6 || changes[0].Why != "passed on" || changes[0].Before != "a" || changes[0].Worker != "b" {
		t.Errorf("%+v, %v", changes, err)
	}

	// The one that is drained hands over all, and so does the one that leaves.
	if w, err := c.DrainWorker(ctx, "jobs", "a:80", false, 0); err != nil || !w.Drained || w.Slices != 2 {
		t.Errorf("%+v, %v", w, err)
	}
	a.until(0)
	b.until(4)
	if w, err := c.DrainWorker(ctx, "jobs", "a", true, 0); err != nil || w.Drained {
		t.Errorf("%+v, %v", w, err)
	}
	for r := (api.ShardStepRequest{Leave: true}); ; {
		h := b.step(r)
		if r.Stopped = stoppedOf(h); h.Left {
			break
		}
		if len(r.Stopped) > 0 {
			b.seen = ""
		}
	}
	a.until(4)
	var p api.Problem
	path := "/v1/shards/jobs/workers/" + url.PathEscape(b.Session.Session)
	want(t, s.ask(t, "PUT", path, "", &p, api.HeaderSecret, b.Secret), http.StatusNotFound)
	if p.Code != api.CodeNoWorker {
		t.Errorf("%+v", p)
	}
}

// Orders about a space come over HTTP, and what is wrong with one is said.
func TestShardOrders(t *testing.T) {
	s := newSite(t, server.Options{})
	c, ctx := s.client(t, s.URL), t.Context()
	a := s.worker(t, "cache", "a", `, "hashed": true, "slices": 2`)
	a.until(2)
	if up, err := c.SplitShard(ctx, "cache", "0x0", "", 0); err != nil || up.Asked != "split" {
		t.Errorf("%+v, %v", up, err)
	}
	a.until(3)
	if one, err := c.MergeShards(ctx, "cache", "0x0", 0); err != nil || one.Asked != "merge" {
		t.Errorf("%+v, %v", one, err)
	}
	a.until(2)
	if one, err := c.ShardLookup(ctx, "cache", "user:4711"); err != nil || len(one.ID) != 33 || one.Worker != "a" {
		t.Errorf("%+v, %v", one, err)
	}
	s.worker(t, "jobs", "x", `, "shards": ["0"]`)
	s.worker(t, "jobs", "x", "")
	for _, one := range []struct {
		err, want error
		text      string
	}{
		{second(c.MoveShard(ctx, "none", "0", "x", 0)), store.ErrNotFound, "there is no space none: GET /v1/shards lists"},
		{second(c.MoveShard(ctx, "jobs", "9", "x", 0)), shard.ErrManyWorkers, "say which by its holder's id"},
		{second(c.MoveShard(ctx, "cache", "9", "a", 0)), store.ErrInvalid, "want 16 hexadecimal digits"},
		{second(c.MoveShard(ctx, "cache", "0x9", "b", 0)), shard.ErrNoWorker, `worker "b"`},
		{second(c.ShardLookup(ctx, "jobs", "9")), shard.ErrNoSlice, `"9" in space jobs`},
		{second(c.SplitShard(ctx, "jobs", "0", "", 0)), shard.ErrMismatch, "names, which have no parts"},
		{second(c.SplitShard(ctx, "cache", "0x0", "0x0", 0)), store.ErrInvalid, "inside of 0000000000000000-7fffffffffffffff"},
		{second(c.MergeShards(ctx, "cache", "ffffffffffffffff", 0)), store.ErrInvalid, "followed by another one"},
		{second(c.ShardLookup(ctx, ".jobs", "9")), store.ErrInvalid, "no dot at the beginning"},
	} {
		if !errors.Is(one.err, one.want) || !strings.Contains(one.err.Error(), one.text) {
			t.Errorf("%v: want %q, which matches %v", one.err, one.text, one.want)
		}
	}
	for path, body := range map[string]string{
		"/v1/shards/a%2Fb":             "",
		"/v1/shards/jobs?limit=0":      "",
		"/v1/shards/jobs/lookup":       "",
		"/v1/shards/cache?after=x":     "",
		"/v1/shards/jobs/move":         `{"to": "x"}`,
		"/v1/shards/jobs/workers":      `{"session": "x"}`,
		"/v1/shards/jobs/drain":        `{"worker": "x", "wait": "9000h"}`,
		"/v1/shards/jobs/workers/none": `{"free": true}`,
	} {
		method := map[bool]string{true: "GET", false: "POST"}[body == ""]
		if strings.HasSuffix(path, "none") {
			method = "PUT"
		}
		var p api.Problem
		want(t, s.ask(t, method, path, body, &p), http.StatusBadRequest)
		if p.Code != api.CodeInvalid || p.Want == "" {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// second returns the error of a call.
func second[T any](_ T, err error) error { return err }

// The rights on a space are those on the names of its slices, and a session is its opener's, who has its secret.
func TestShardRights(t *testing.T) {
	s := newSite(t, server.Options{Authenticate: func(r *http.Request) (server.Caller, error) { return mayOnly(r.Header.Get("As")), nil }})
	var session api.Session
	want(t, s.ask(t, "POST", "/v1/sessions", "", &session, "As", "acquire own/*"), http.StatusCreated)
	join := fmt.Sprintf(`{"session": %q, "shards": ["0"]}`, session.Session)
	for _, one := range []struct {
		method, path, body, as string
		status                 int
	}{
		{"POST", "/v1/shards/own/workers", join, "acquire own/*", http.StatusCreated},
		{"POST", "/v1/shards/other/workers", join, "acquire own/*", http.StatusForbidden},
		{"POST", "/v1/shards/own/workers", join, "read own/*", http.StatusForbidden},
		{"GET", "/v1/shards/own", "", "read own/*", http.StatusOK},
		{"GET", "/v1/shards/own", "", "read other/*", http.StatusForbidden},
		{"GET", "/v1/shards/own/history", "", "acquire own/*", http.StatusForbidden},
		{"GET", "/v1/shards/own/lookup?key=0", "", "read own/*", http.StatusOK},
		{"POST", "/v1/shards/own/move", `{"slice": "0", "to": "x"}`, "acquire own/*", http.StatusForbidden},
		{"POST", "/v1/shards/own/move", `{"slice": "0", "to": "x"}`, "handoff own/*", http.StatusNotFound},
		{"POST", "/v1/shards/own/drain", `{"worker": "x"}`, "acquire own/*", http.StatusForbidden},
		{"POST", "/v1/shards/own/split", `{"slice": "0"}`, "read own/*", http.StatusForbidden},
		{"POST", "/v1/shards/own/merge", `{"slice": "0"}`, "read own/*", http.StatusForbidden},
	} {
		got := s.ask(t, one.method, one.path, one.body, nil, "As", one.as, api.HeaderSecret, session.Secret)
		if got.status != one.status {
			t.Errorf("%s as %s: %d, want %d", got.asked, one.as, got.status, one.status)
		}
	}
	var spaces api.ShardSpaces
	want(t, s.ask(t, "GET", "/v1/shards", "", &spaces, "As", "read other/*"), http.StatusOK)
	if len(spaces.Spaces) != 0 {
		t.Errorf("a caller is shown %+v, which it may not read", spaces)
	}
	var p api.Problem
	want(t, s.ask(t, "PUT", "/v1/shards/own/workers/"+url.PathEscape(session.Session), "", &p, "As", "acquire own/*", api.HeaderSecret, "wrong"), http.StatusForbidden)
	if p.Code != api.CodeSecret {
		t.Errorf("%+v", p)
	}
}

// mayOnly is a caller that may do one thing: an action and the names that it is about.
type mayOnly string

func (o mayOnly) Name() string { return "someone" }

func (o mayOnly) May(action server.Action, name string) bool {
	may, names, _ := strings.Cut(string(o), " ")
	return may == string(action) && (name == "" || name == names)
}
