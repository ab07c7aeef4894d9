package server_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// virtual is a clock that runs as the bubble of a test does.
func virtual() *clocktest.Clock { return clocktest.New(clock.Instant(time.Hour)) }

// diary is a journal in memory, which may fail.
type diary struct {
	mu    sync.Mutex
	spans map[string]server.Span
	fail  error
	hang  chan struct{} // Note waits for it
	notes int

	single bool // a page has one span
}

func (d *diary) Standing(context.Context) (all []server.Span, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.spans {
		if s.Until.IsZero() {
			all = append(all, s)
		}
	}
	return all, d.fail
}

func (d *diary) Note(_ context.Context, spans []server.Span) error {
	d.mu.Lock()
	hang := d.hang
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return d.fail
	}
	if d.spans == nil {
		d.spans = map[string]server.Span{}
	}
	for _, s := range spans {
		mark := s.From.UnixNano()
		if s.Kind == server.SpanTerm || s.Kind == server.SpanShare {
			mark = 0
		}
		d.notes++
		d.spans[fmt.Sprint(s.Name, "\x00", s.Kind, s.Token, mark)] = s
	}
	return nil
}

func (d *diary) Find(_ context.Context, q server.SpanQuery) (p server.SpanPage, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.SortedFunc(maps.Values(d.spans), func(a, b server.Span) int { return cmp.Or(b.Until.Compare(a.Until), strings.Compare(a.Name, b.Name)) })
	for i, s := range all {
		if q.After != "" && fmt.Sprint(i) <= q.After || !strings.HasPrefix(s.Name, q.Prefix) || q.Name != "" && s.Name != q.Name {
			continue
		}
		if p.Spans = append(p.Spans, s); d.single && i+1 < len(all) {
			p.Next = fmt.Sprint(i)
			break
		}
	}
	return p, d.fail
}

func (d *diary) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// told returns what is noted of a name: kind, token less base, and how it ended, "…" if it hasn't.
func (d *diary) told(name string, base fence.Token) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.Collect(maps.Values(d.spans))
	slices.SortFunc(all, func(a, b server.Span) int {
		if c := a.From.Compare(b.From); c != 0 {
			return c
		}
		return strings.Compare(string(a.Kind), string(b.Kind))
	})
	var texts []string
	for _, s := range all {
		if s.Name != name {
			continue
		}
		text := fmt.Sprintf("%s %d", s.Kind, s.Token-min(base, s.Token))
		switch {
		case s.Until.IsZero():
			text += " …"
		case s.Ended != "":
			text += " " + s.Ended
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

func chronicled(t *testing.T, st store.Store, d *diary, opts server.Options) *server.Server {
	t.Helper()
	opts.Journal, opts.Clock = d, virtual()
	srv, err := server.New(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

func (d *diary) want(t *testing.T, name string, base fence.Token, want string) {
	t.Helper()
	time.Sleep(2 * time.Second) // two looks
	synctest.Wait()
	if got := d.told(name, base); got != want {
		t.Errorf("noted of %s: %s\nwant: %s", name, got, want)
	}
}

func put(t *testing.T, st store.Store, rec store.Record) store.Record {
	t.Helper()
	if rec.Acquired.IsZero() && rec.Owner != "" {
		rec.Acquired = time.Now()
	}
	if rec.TTL == 0 {
		rec.TTL = time.Minute
	}
	rec.Nonce = fmt.Sprint(time.Now().UnixNano(), rec.Token, rec.Intervention)
	rec, err := st.Put(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// Terms are noted once each, whatever the number of renewals: those that came and went between two looks, too.
func TestTheJournalHasTermsAndNotRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, st := &diary{}, memory.New(memory.Options{Clock: virtual()})
		srv := chronicled(t, st, d, server.Options{})
		defer func() { _ = srv.Close() }()
		rec := put(t, st, store.Record{Key: "job", Owner: "a/1", Token: 1})
		d.want(t, "job", 0, "term 1 …")
		notes := d.notes
		for range 20 {
			rec = put(t, st, rec)
			time.Sleep(time.Second)
		}
		d.want(t, "job", 0, "term 1 …")
		if d.notes != notes {
			t.Errorf("%d notes for 20 renewals, want none", d.notes-notes)
		}
		now := time.Now()
		rec.Owner, rec.Token, rec.Acquired = "c/1", 3, now.Add(2)
		rec.Past = []store.Term{{Owner: "b/1", Token: 2, From: now, Until: now.Add(1), Why: "released"}, {Owner: "a/1", Token: 1, From: now.Add(-time.Minute), Until: now, Why: "expired"}}
		put(t, st, rec)
		d.want(t, "job", 0, "term 1 expired; term 2 released; term 3 …")
	})
}

// What stands when a server ends is ended by the next one: by what the record remembers, or as not known.
func TestTheJournalIsContinuedAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, st := &diary{}, memory.New(memory.Options{Clock: virtual()})
		srv := chronicled(t, st, d, server.Options{})
		begun := time.Now()
		kept, many, gone := put(t, st, store.Record{Key: "kept", Owner: "a/1", Token: 1}), put(t, st, store.Record{Key: "many", Owner: "a/1", Token: 1}), put(t, st, store.Record{Key: "gone", Owner: "a/1", Token: 1})
		put(t, st, store.Record{Key: "same", Owner: "a/1", Token: 1, TTL: time.Hour})
		d.want(t, "gone", 0, "term 1 …")
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		at := time.Now()
		kept.Owner, kept.Token, kept.Acquired = "b/1", 2, at.Add(time.Second)
		kept.Past = []store.Term{{Owner: "a/1", Token: 1, From: begun, Until: at, Why: "broken by ops"}}
		put(t, st, kept)
		many.Owner, many.Token, many.Acquired = "b/1", 20, at.Add(time.Second)
		for i := range store.MaxPast {
			many.Past = append(many.Past, store.Term{Owner: "c/1", Token: fence.Token(19 - i), From: at.Add(-time.Duration(i) * time.Second), Until: at.Add(-time.Duration(i-1) * time.Second), Why: "released"})
		}
		put(t, st, many)
		if err := st.Delete(t.Context(), gone.Key, gone.Version); err != nil {
			t.Fatal(err)
		}
		srv = chronicled(t, st, d, server.Options{})
		defer func() { _ = srv.Close() }()
		d.want(t, "kept", 0, "term 1 broken by ops; term 2 …")
		d.want(t, "gone", 0, "term 1 its record was deleted")
		d.want(t, "same", 0, "term 1 …")
		got := d.told("many", 0)
		if want := "term 1 not known: seen by nobody; term 12 released; "; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "; term 20 …") {
			t.Errorf("noted of many: %s\nwant %s… term 20 …", got, want)
		}
	})
}

// The journal says what a name was, which session kept it and where its holder ran, also once the term is over and after a restart.
func TestTheJournalKnowsSessionsAndZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, st := &diary{}, memory.New(memory.Options{Clock: virtual()})
		srv := chronicled(t, st, d, server.Options{})
		const session = ".session/a/1/s"
		put(t, st, store.Record{Key: session, Owner: "a/1", Token: 1, TTL: time.Hour})
		rec := put(t, st, store.Record{Key: "vote", Kind: store.KindElection, Owner: "a/1", Token: 1, Session: session})
		put(t, st, store.Record{Key: "job", Owner: "b/1", Token: 1, TTL: time.Hour, Info: map[string]string{"region": "us-east-2"}})
		want := func(name string, token fence.Token, want server.Span) {
			t.Helper()
			time.Sleep(2 * time.Second) // two looks
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			got := d.spans[fmt.Sprint(name, "\x00", server.SpanTerm, token, 0)]
			if (server.Span{NameKind: got.NameKind, Session: got.Session, Zone: got.Zone, Ended: got.Ended}) != want {
				t.Errorf("of %s %d: %+v\nwant %+v", name, token, got, want)
			}
		}
		want("vote", 1, server.Span{NameKind: store.KindElection, Session: session})
		want("job", 1, server.Span{Zone: "us-east-2"})
		list := func(zone string) {
			data := fmt.Sprintf(`{"v": 1, "candidates": [{"session": %q, "name": "a", "zone": %q, "since": "2026-11-21T10:00:00Z"}]}`, session, zone)
			put(t, st, store.Record{Key: ".election/vote", Data: []byte(data)})
		}
		list("eu-1") // once it leads
		want("vote", 1, server.Span{NameKind: store.KindElection, Session: session, Zone: "eu-1"})
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		rec.Past = []store.Term{{Owner: "a/1", Token: 1, From: rec.Acquired, Until: time.Now(), Why: "released"}}
		rec.Owner, rec.Token, rec.Session, rec.Acquired = "b/1", 2, "", time.Now()
		put(t, st, rec)
		srv = chronicled(t, st, d, server.Options{})
		defer func() { _ = srv.Close() }()
		want("vote", 1, server.Span{NameKind: store.KindElection, Session: session, Zone: "eu-1", Ended: "released"})
		want("vote", 2, server.Span{NameKind: store.KindElection})
	})
}

// A report has all pages of the journal.
func TestAReportHasAllPages(t *testing.T) {
	d, now := &diary{single: true}, time.Now()
	for _, name := range []string{"a", "b", "c"} {
		if err := d.Note(t.Context(), []server.Span{{Name: name, Kind: server.SpanTerm, Holder: "x/1", Token: 1, From: now.Add(-time.Hour), Until: now.Add(-time.Minute), Ended: "expired"}}); err != nil {
			t.Fatal(err)
		}
	}
	srv := chronicled(t, memory.New(memory.Options{Clock: virtual()}), d, server.Options{})
	defer func() { _ = srv.Close() }()
	w := httptest.NewRecorder()
	url := "/v1/history/report?since=" + now.Add(-2*time.Hour).UTC().Format(time.RFC3339) + "&until=" + now.UTC().Format(time.RFC3339)
	srv.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody))
	if !strings.Contains(w.Body.String(), "- 3 terms that their holders did not end\n") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What isn't a term: expiry and its end by a late renewal, a break, a hand-over, a pause, a wait.
func TestTheJournalHasStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, st := &diary{}, memory.New(memory.Options{Clock: virtual()})
		srv := chronicled(t, st, d, server.Options{})
		defer func() { _ = srv.Close() }()
		rec := put(t, st, store.Record{Key: "late", Owner: "a/1", Token: 1, TTL: 10 * time.Second})
		time.Sleep(15 * time.Second)
		d.want(t, "late", 0, "term 1 …; expired 1 …")
		rec = put(t, st, rec)
		d.want(t, "late", 0, "term 1 …; expired 1")
		rec.Intervention, rec.Note = store.InterventionBroken, "ops: drained"
		rec = put(t, st, rec)
		d.want(t, "late", 0, "term 1 …; expired 1; broken 1 …")
		rec.Intervention, rec.Owner, rec.Token, rec.Note = store.InterventionHandedOver, "b/1", 2, "a/1"
		rec.Past = []store.Term{{Owner: "a/1", Token: 1, From: rec.Acquired, Until: time.Now(), Why: "handed over to b/1"}}
		put(t, st, rec)
		d.want(t, "late", 0, "term 1 handed over to b/1; expired 1; broken 1; handed over 2 …")

		if err := election.SetPause(t.Context(), st, "vote", election.Pause{By: "ops", Reason: "drill", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		d.want(t, "vote", 0, "paused 0 …")
		if err := election.Resume(t.Context(), st, "vote", "*"); err != nil {
			t.Fatal(err)
		}
		d.want(t, "vote", 0, "paused 0")

		put(t, st, store.Record{Key: "busy", Owner: "a/1", Token: 1, TTL: time.Hour})
		ctx, stop := context.WithCancel(t.Context())
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/leases/busy", strings.NewReader(`{"wait": 600}`))
			srv.ServeHTTP(httptest.NewRecorder(), r)
		}()
		d.want(t, "busy", 0, "term 1 …; waiting 0 …")
		stop()
		<-answered
		d.want(t, "busy", 0, "term 1 …; waiting 0")
	})
}

// A journal that fails, or hangs, stops no request; it is said once, and when it works again it has what was missed.
func TestAJournalThatFailsStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var said []string
		d, st := &diary{fail: errors.New("disk full")}, memory.New(memory.Options{Clock: virtual()})
		srv := chronicled(t, st, d, server.Options{OnJournal: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, fmt.Sprint(err))
		}})
		defer func() { _ = srv.Close() }()
		ask := func(method, path, body string) *httptest.ResponseRecorder {
			t.Helper()
			begun, w := time.Now(), httptest.NewRecorder()
			srv.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
			if took := time.Since(begun); took != 0 {
				t.Errorf("%s %s took %v", method, path, took)
			}
			return w
		}
		time.Sleep(time.Minute)
		if w := ask("POST", "/v1/leases/job", `{"holder": "a", "ttl": 600}`); w.Code != http.StatusCreated {
			t.Errorf("acquire: %d %s", w.Code, w.Body)
		}
		if w := ask("GET", "/readyz", ""); w.Code != http.StatusOK || w.Body.String() != "ok\nthe journal is not kept: disk full\n" {
			t.Errorf("readyz: %d %q", w.Code, w.Body)
		}
		if w := ask("GET", "/metrics", ""); !strings.Contains(w.Body.String(), "\nleasehold_journal_up 0\n") {
			t.Errorf("metrics: %s", w.Body)
		}
		if w := ask("GET", "/v1/history", ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"journal_unavailable"`) {
			t.Errorf("history: %d %s", w.Code, w.Body)
		}
		d.set(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := d.told("job", fence.MaxToken); got != "term 0 …" {
			t.Errorf("noted: %s", got)
		}
		if w := ask("GET", "/metrics", ""); !strings.Contains(w.Body.String(), "\nleasehold_journal_up 1\n") {
			t.Errorf("metrics: %s", w.Body)
		}
		mu.Lock()
		if want := []string{"the journal is not kept: disk full", "<nil>"}; !slices.Equal(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
		mu.Unlock()

		hang := make(chan struct{})
		d.mu.Lock()
		d.hang = hang
		d.mu.Unlock()
		time.Sleep(5 * time.Second)
		if w := ask("POST", "/v1/leases/other", `{"holder": "a", "ttl": 600}`); w.Code != http.StatusCreated {
			t.Errorf("acquire: %d %s", w.Code, w.Body)
		}
		time.Sleep(time.Minute)
		close(hang)
		d.mu.Lock()
		d.hang = nil
		d.mu.Unlock()
		d.want(t, "other", fence.MaxToken, "term 0 …")
	})
}

// A look that fails ends no term.
func TestALookThatFailsEndsNoTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, st := &diary{}, &slowList{Store: memory.New(memory.Options{Clock: virtual()}), read: make(chan struct{}, 1)}
		srv := chronicled(t, st, d, server.Options{})
		defer func() { _ = srv.Close() }()
		put(t, st, store.Record{Key: "job", Owner: "a/1", Token: 1, TTL: time.Hour})
		d.want(t, "job", 0, "term 1 …")
		st.fail.Store(true)
		time.Sleep(time.Minute)
		d.want(t, "job", 0, "term 1 …")
	})
}

// onlyCI is a caller that may read names that begin with ci/.
type onlyCI struct{}

func (onlyCI) Name() string { return "ci" }
func (onlyCI) May(action server.Action, name string) bool {
	return action == server.Read && (name == "" || strings.HasPrefix(name, "ci/"))
}

// A caller is told of names that it may read, and of no others, whatever it asks for.
func TestTheJournalIsReadByRight(t *testing.T) {
	d := &diary{}
	now := time.Now()
	if err := d.Note(t.Context(), []server.Span{{Name: "ci/a", Kind: server.SpanTerm, Holder: "x/1", Token: 1, From: now}, {Name: "secret/b", Kind: server.SpanTerm, Holder: "x/1", Token: 1, From: now}}); err != nil {
		t.Fatal(err)
	}
	st := memory.New(memory.Options{Clock: virtual()})
	put(t, st, store.Record{Key: "ci/a", Owner: "x/1", Token: 1})
	put(t, st, store.Record{Key: "secret/b", Owner: "x/1", Token: 1})
	srv := chronicled(t, st, d, server.Options{Authenticate: func(*http.Request) (server.Caller, error) { return onlyCI{}, nil }})
	defer func() { _ = srv.Close() }()
	for query, want := range map[string]int{
		"?prefix=ci/": 200, "?name=ci/a": 200, "?prefix=ci/&holder=x": 200,
		"": 403, "?prefix=": 403, "?prefix=c": 403, "?prefix=ci": 403, "?name=secret/b": 403, "?holder=x": 403, "?prefix=secret/": 403, "?name=": 403,
		"?name=secret/b&prefix=ci/": 400, "?name=.session/x": 400, "?prefix=ci/&limit=0": 400, "?prefix=ci/&limit=10001": 400, "?prefix=ci/&since=yesterday": 400, "?prefix=ci/&since=2026-01-01T00:00:00Z&until=x": 400,
	} {
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/history"+query, http.NoBody))
		if w.Code != want || strings.Contains(w.Body.String(), "secret/b") && w.Code == 200 {
			t.Errorf("%s: %d %s, want %d", query, w.Code, w.Body, want)
		}
	}
	since := now.Add(-time.Minute).UTC().Format(time.RFC3339)
	for query, want := range map[string]int{
		"?prefix=ci/&since=" + since: 200, "?name=ci/a&since=" + since: 200, "?since=" + since: 403, "?name=secret/b&since=" + since: 403,
		"?prefix=ci/": 400, "?prefix=ci/&since=x": 400, "?prefix=ci/&since=" + since + "&until=2026-01-01T00:00:00Z": 400, "?prefix=ci/&limit=5&since=" + since: 400,
	} {
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/history/report"+query, http.NoBody))
		if w.Code != want || w.Code == 200 && !(strings.HasPrefix(w.Body.String(), "# Leases from ") && strings.Contains(w.Body.String(), "| ci/a | acquired | x/1 | 1 |")) || w.Code == 200 && strings.Contains(w.Body.String(), "secret/b") {
			t.Errorf("report %s: %d %s, want %d", query, w.Code, w.Body, want)
		}
	}
	none, err := server.New(st, server.Options{Clock: virtual()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = none.Close() }()
	w := httptest.NewRecorder()
	none.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/history", http.NoBody))
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), string(api.CodeNoJournal)) {
		t.Errorf("without a journal: %d %s", w.Code, w.Body)
	}
}
