package journal

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// calendar is a clock whose time of day is set.
type calendar struct {
	clock.Clock
	now time.Time
}

func (c *calendar) Wall() time.Time { return c.now }

func newCalendar() *calendar { return &calendar{clock.System(), epoch} }

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

const still = 1 << 40 // until then it lasts

func term(name string, token fence.Token, from, until int) server.Span {
	s := server.Span{Name: name, Kind: server.SpanTerm, Holder: fmt.Sprintf("web%d/x", token%3), Token: token, From: at(from)}
	if until != still {
		s.Until, s.Ended = at(until), "released"
	}
	return s
}

func begin(t *testing.T, path string, opts Options) *Journal {
	t.Helper()
	if opts.Clock == nil {
		opts.Clock = newCalendar()
	}
	j := New(path, opts)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func (j *Journal) note(t *testing.T, spans ...server.Span) {
	t.Helper()
	if err := j.Note(t.Context(), spans); err != nil {
		t.Fatal(err)
	}
}

// all reads pages until there is none.
func (j *Journal) all(t *testing.T, q server.SpanQuery) (texts []string) {
	t.Helper()
	for {
		page, err := j.Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Spans) > q.Limit {
			t.Fatalf("%d spans, want %d at most", len(page.Spans), q.Limit)
		}
		for _, s := range page.Spans {
			text := fmt.Sprintf("%s %s %d", s.Name, s.Kind, s.Token)
			if s.Until.IsZero() {
				text += " …"
			}
			texts = append(texts, text)
		}
		if q.After = page.Next; q.After == "" {
			return texts
		}
	}
}

func TestFind(t *testing.T) {
	j := begin(t, filepath.Join(t.TempDir(), "j"), Options{})
	pause := server.Span{Name: "ci/a", Kind: server.SpanPaused, Holder: "ops", From: at(-90), Until: at(-80), Note: "drill"}
	j.note(t, term("ci/a", 1, -100, -50), term("ci/a", 2, -40, -1), term("db", 1, -1000, -500), term("ci", 7, -30, -1), pause)
	j.note(t, term("db", 4, -20, -1))
	for _, s := range []server.Span{term("ci/a", 1, -100, -50), pause} { // again
		j.note(t, s)
	}
	s := term("db", 5, -10, still)
	j.note(t, s)
	for name, c := range map[string]struct {
		q    server.SpanQuery
		want string
	}{
		"all":           {server.SpanQuery{}, "db term 5 …, db term 4, ci term 7, ci/a term 2, ci/a term 1, ci/a paused 0, db term 1"},
		"prefix":        {server.SpanQuery{Prefix: "ci/"}, "ci/a term 2, ci/a term 1, ci/a paused 0"},
		"name":          {server.SpanQuery{Name: "ci"}, "ci term 7"},
		"no such name":  {server.SpanQuery{Name: "c"}, ""},
		"since":         {server.SpanQuery{Since: at(-60)}, "db term 5 …, db term 4, ci term 7, ci/a term 2, ci/a term 1"},
		"until":         {server.SpanQuery{Until: at(-200)}, "db term 1"},
		"since, until":  {server.SpanQuery{Since: at(-60), Until: at(-35)}, "ci/a term 2, ci/a term 1"},
		"holder":        {server.SpanQuery{Holder: "web2"}, "db term 5 …, ci/a term 2"},
		"holder's id":   {server.SpanQuery{Holder: "web2/x"}, "db term 5 …, ci/a term 2"},
		"half a holder": {server.SpanQuery{Holder: "web"}, ""},
	} {
		for _, limit := range []int{1, 2, 100} {
			c.q.Limit = limit
			if got := strings.Join(j.all(t, c.q), ", "); got != c.want {
				t.Errorf("%s, %d at a time: %s\nwant %s", name, limit, got, c.want)
			}
		}
	}
	s.Until, s.Ended = at(0), "expired"
	j.note(t, s)
	page, err := j.Find(t.Context(), server.SpanQuery{Name: "db", Limit: 1})
	if err != nil || len(page.Spans) != 1 || page.Spans[0] != s {
		t.Errorf("%v, %v; want %v", page.Spans, err, s)
	}
	if spans, err := j.Standing(t.Context()); err != nil || len(spans) != 0 {
		t.Errorf("standing: %v, %v", spans, err)
	}
	if _, err := j.Find(t.Context(), server.SpanQuery{Limit: 1, After: "x'y"}); err == nil || !strings.Contains(err.Error(), "after") {
		t.Errorf("another one's place: %v", err)
	}
}

// What has been kept long enough goes, and the oldest when there is too much; the journal says from when on it is complete.
// Which session kept a name, and where, is kept, and known of a term that ends: also in a file that an earlier version began, which that
// version can still write.
func TestSessionsAndZones(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := begin(t, path, Options{})
	j.note(t, term("old", 1, -100, still))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	earlier := func(statements ...string) {
		t.Helper()
		db, err := sql.Open("sqlite", dsn(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range statements {
			if _, err := db.ExecContext(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	earlier("ALTER TABLE spans DROP COLUMN what", "ALTER TABLE spans DROP COLUMN session", "ALTER TABLE spans DROP COLUMN zone")
	own, other := term("own", 2, -50, still), term("other", 3, -40, still)
	own.NameKind, own.Session, own.Zone = store.KindElection, ".session/"+own.Holder+"/nonce", "eu-1"
	other.Session = ".session/another/x/nonce"
	j.note(t, own, other)
	want := []server.Span{other, own, term("old", 1, -100, still)}
	if got, err := j.Standing(t.Context()); err != nil || !same(got, want) {
		t.Fatalf("%+v, %v\nwant %+v", got, err, want)
	}
	late := want[2]
	late.Zone, late.Session = "eu-2", ".session/"+late.Holder+"/nonce" // learned while it lasts
	j.note(t, late)
	ended := term("own", 2, -50, -1) // by the record alone
	j.note(t, ended)
	own.Until, own.Ended = ended.Until, ended.Ended
	page, err := j.Find(t.Context(), server.SpanQuery{Limit: 10})
	if want = []server.Span{other, late, own}; err != nil || !same(page.Spans, want) {
		t.Fatalf("%+v, %v\nwant %+v", page.Spans, err, want)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	earlier("INSERT INTO spans (name, kind, token, mark, began, ends, holder, ended, note) VALUES (1, 0, 9, 0, 1, 2, 'x', '', '')")
}

// same reports whether the spans are those, in any order.
func same(got, want []server.Span) bool {
	less := func(a, b server.Span) int { return strings.Compare(a.Name, b.Name) }
	return slices.Equal(slices.SortedFunc(slices.Values(got), less), slices.SortedFunc(slices.Values(want), less))
}

func TestSweep(t *testing.T) {
	clk := newCalendar()
	j := begin(t, filepath.Join(t.TempDir(), "j"), Options{Clock: clk, Keep: time.Hour, Rows: 1000})
	j.note(t, term("open", 1, -100_000, still), term("old", 1, -7000, -5000), term("a", 1, -100, -50))
	if got := j.all(t, server.SpanQuery{Limit: 10}); len(got) != 2 {
		t.Errorf("kept %v: want nothing of what is too old", got)
	}
	clk.now = clk.now.Add(2 * time.Hour)
	j.note(t)
	if got := j.all(t, server.SpanQuery{Limit: 10}); len(got) != 1 {
		t.Errorf("kept %v: want what has no end", got)
	}
	page, err := j.Find(t.Context(), server.SpanQuery{Limit: 1})
	if err != nil || !page.From.Equal(epoch) {
		t.Errorf("complete from %v, %v", page.From, err)
	}
	var spans []server.Span
	for i := range 3000 {
		spans = append(spans, term(fmt.Sprintf("n%d", i%50), fence.Token(i+1), 7000, 7000+i/10))
	}
	spans = append(spans, term("ahead", 1, 0, 1<<31)) // by a clock that is wrong
	for i := 0; i < len(spans); i += 500 {
		j.note(t, spans[i:min(i+500, len(spans))]...)
	}
	j.note(t)
	if got := j.all(t, server.SpanQuery{Limit: 5000}); len(got) != 1000 || got[0] != "open term 1 …" || !slices.Contains(got, "ahead term 1") {
		t.Errorf("kept %d, the first %v; want 1000, the latest", len(got), got[0])
	}
	if page, err = j.Find(t.Context(), server.SpanQuery{Limit: 1}); err != nil || page.From.Before(at(7190)) {
		t.Errorf("complete from %v, %v", page.From, err)
	}
	clk.now = clk.now.Add(1000 * time.Hour)
	j.note(t)
	clk.now = clk.now.Add(time.Hour)
	j.note(t)
	var names int
	if err := j.db.QueryRowContext(t.Context(), "SELECT count(*) FROM names").Scan(&names); err != nil || names != 1 {
		t.Errorf("%d names are left, %v; want 1", names, err)
	}
}

// A second server on the same file is told so, and has it when the first has ended.
func TestOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	first, second := begin(t, path, Options{}), begin(t, path, Options{})
	first.note(t, term("a", 1, -10, -5))
	if err := second.Note(t.Context(), []server.Span{term("a", 2, -4, -3)}); err == nil || !strings.Contains(err.Error(), "another server writes to this file") {
		t.Fatalf("the second one: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second.note(t, term("a", 2, -4, -3))
	if got := second.all(t, server.SpanQuery{Limit: 10}); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// A damaged file is moved aside, and named; another one is begun. What is no journal is not touched.
func TestDamage(t *testing.T) {
	zeros := func(text []byte) []byte { return make([]byte, len(text)) }
	garbled := func(text []byte) []byte {
		for i := 4096; i < len(text); i++ {
			text[i] ^= 0x5a
		}
		return text
	}
	headless := func(text []byte) []byte {
		for i := 16; i < 100; i++ {
			text[i] ^= 0x5a
		}
		return text
	}
	for name, damage := range map[string]func([]byte) []byte{"zeros": zeros, "garbled": garbled, "headless": headless} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			j := begin(t, path, Options{})
			j.note(t, term("a", 1, -10, -5))
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = damage(text)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			moved := ""
			j = begin(t, path, Options{OnMoved: func(_, to string) { moved = to }})
			for range 3 { // as the server tries again
				if err = j.Note(t.Context(), []server.Span{term("b", 1, -10, -5)}); err == nil {
					break
				}
			}
			if got := j.all(t, server.SpanQuery{Limit: 10}); err != nil || len(got) != 1 || got[0] != "b term 1" {
				t.Errorf("%v, %v", got, err)
			}
			if kept, err := os.ReadFile(moved); err != nil || string(kept) != string(text) {
				t.Errorf("moved to %q: %v", moved, err)
			}
		})
	}
	other := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(other, []byte("callers: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := begin(t, other, Options{}).Note(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "name another file") {
		t.Errorf("another file: %v", err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "callers: []\n" {
		t.Errorf("it is now %q, %v", text, err)
	}
}

// A full disk and a file that goes are errors, and no more than that: afterwards it works again.
func TestFailures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := begin(t, path, Options{})
	j.pages = 40
	var err error
	for i := 0; err == nil && i < 100; i++ {
		var spans []server.Span
		for k := range 100 {
			spans = append(spans, term(fmt.Sprintf("n%d/%d", i, k), 1, -10, -5))
		}
		err = j.Note(t.Context(), spans)
	}
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("a full disk: %v", err)
	}
	before := len(j.all(t, server.SpanQuery{Limit: 10_000}))
	j.pages = 0
	_ = j.Close() // for the limit, which is the connection's
	j.note(t, term("after", 1, -10, -5))
	if got := j.all(t, server.SpanQuery{Limit: 10_000}); len(got) != before+1 {
		t.Errorf("%d spans, want %d", len(got), before+1)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := j.Note(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("a removed file: %v", err)
	}
	_ = os.Remove(path + "-wal")
	j.note(t, term("again", 1, -10, -5))
	if got := j.all(t, server.SpanQuery{Limit: 10}); len(got) != 1 {
		t.Errorf("%v, want a new journal", got)
	}
	if err := begin(t, filepath.Join(t.TempDir(), "none", "j"), Options{}).Note(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without a folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Note(ctx, nil); err != context.Canceled {
		t.Errorf("canceled: %v", err)
	}
	j.note(t)
}

// Of what was committed, a crash takes nothing but what the machine's crash may.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	j := begin(t, filepath.Join(dir, "j"), Options{})
	for i := range 50 {
		j.note(t, term("a", fence.Token(i+1), -100+i, -99+i))
	}
	other := filepath.Join(dir, "copy") // as the files are, without a word to the one that writes
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(filepath.Join(dir, "j"+suffix))
		if err != nil {
			t.Fatal(err)
		}
		if suffix == "-wal" {
			text = text[:len(text)-100] // and the last page torn
		}
		if err := os.WriteFile(other+suffix, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := begin(t, other, Options{}).all(t, server.SpanQuery{Limit: 100}); len(got) != 49 {
		t.Errorf("%d spans, want 49: all but the torn one", len(got))
	}
}

// LEASEHOLD_JOURNAL_ROWS=1000000 is what the documentation says; 100,000 are a tenth of it.
func TestSizeOfALargeJournal(t *testing.T) {
	rows := 100_000
	if text := os.Getenv("LEASEHOLD_JOURNAL_ROWS"); text != "" {
		if _, err := fmt.Sscan(text, &rows); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "j")
	j := begin(t, path, Options{Clock: clock.System()})
	now, begun := time.Now(), time.Now()
	var spans []server.Span
	for i := range rows { // as a server names holders: host, process and 13 letters
		from := now.Add(-time.Duration(rows-i) * time.Second)
		holder := fmt.Sprintf("web%d.example.com/k3v9x%08d", i%40, i)
		spans = append(spans, server.Span{
			Session: ".session/" + holder + "/" + rand.Text()[:20], Zone: "us-east-1a",
			Name: fmt.Sprintf("backup/%04d", i%10_000), Kind: server.SpanTerm, Holder: holder, Token: fence.Token(from.UnixMilli()), //nolint:gosec // after 1970
			From: from, Until: from.Add(30 * time.Second), Ended: "released",
		})
		if len(spans) == 1000 {
			j.note(t, spans...)
			spans = spans[:0]
		}
	}
	j.note(t, spans...)
	wrote := time.Since(begun)
	begun = time.Now()
	page, err := j.Find(t.Context(), server.SpanQuery{Since: now.Add(-time.Hour), Limit: 1000})
	hour := time.Since(begun)
	if err != nil || len(page.Spans) != 1000 {
		t.Fatalf("%d spans, %v", len(page.Spans), err)
	}
	begun = time.Now()
	if _, err = j.Find(t.Context(), server.SpanQuery{Prefix: "none/", Limit: 1000}); err != nil {
		t.Fatal(err)
	}
	none := time.Since(begun)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d terms: %.1f MB, %d bytes each; written in %v, %.0f µs each; an hour's page of 1000 read in %v, a page that finds nothing in %v",
		rows, float64(info.Size())/1e6, info.Size()/int64(rows), wrote, float64(wrote.Microseconds())/float64(rows), hour, none)
	if each := info.Size() / int64(rows); each > 190 {
		t.Errorf("%d bytes a term: want 190 at most, so that a million take less than 200 MB", each)
	}
}
