package engines

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/file"
	"github.com/leasehold/leasehold/store/memory"
)

var update = flag.Bool("update", false, "rewrite docs/engines.md")

const page = "../../../docs/engines.md"

// row is what the page says of an engine.
type row struct {
	engine, version string
	about           store.Properties
	trips           string // round trips
	handover        string
}

// TestTable measures what docs/engines.md says of each engine, and sees that the page says so. Times differ from machine to
// machine: they are written, and not compared. Of servers that come with the system, the line of releases is (kind.release), and
// that only where all servers are required, as in CI: elsewhere the system may have others.
func TestTable(t *testing.T) {
	rows := []row{embedded(t, "memory", memory.New(memory.Options{})), embedded(t, "file", openFile(t))}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { rows = append(rows, k.row(t)) })
	}
	if t.Failed() || len(rows) < len(kinds)+2 {
		return // what is missing has said so
	}
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := render(rows, notes(old))
	if *update {
		err = os.WriteFile(page, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all"
	if diff := differences(lasting(old, all), lasting(text, all)); !*update && diff != "" {
		t.Errorf("docs/engines.md (-) is not what was measured (+): go test ./internal/proof/engines -run TestTable -update\n%s", diff)
	}
}

// notes returns what people have written on the page.
func notes(page []byte) []byte {
	_, after, _ := bytes.Cut(page, []byte("\n### What the columns leave out\n"))
	text, _, _ := bytes.Cut(after, []byte("\n## "))
	return []byte("### What the columns leave out\n" + string(text) + "\n")
}

// differences are the lines that only one of two texts has: with - those of the first, with + those of the second.
func differences(old, text []byte) string {
	var diff strings.Builder
	only := func(sign string, of, but []byte) {
		has := map[string]bool{}
		for line := range strings.Lines(string(but)) {
			has[line] = true
		}
		for line := range strings.Lines(string(of)) {
			if !has[line] {
				diff.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	only("- ", old, text)
	only("+ ", text, old)
	if diff.Len() == 0 && !bytes.Equal(old, text) {
		return "the same lines in another order, or more often\n"
	}
	return diff.String()
}

// What TestTable says when an engine is measured otherwise is that engine's line alone.
func TestOnlyWhatDiffersIsTold(t *testing.T) {
	old := []byte("# Engines\n| etcd | 2 / 1 / 1 / 1 |\n| nats | 1 / 1 / 1 / 1 |\n\nThe end\n")
	text := bytes.Replace(old, []byte("etcd | 2"), []byte("etcd | 1"), 1)
	if got, want := differences(old, text), "- | etcd | 2 / 1 / 1 / 1 |\n+ | etcd | 1 / 1 / 1 / 1 |\n"; got != want {
		t.Errorf("it says\n%swant\n%s", got, want)
	}
	if got := differences(old, old); got != "" {
		t.Errorf("of the same it says %q", got)
	}
	if got := differences(old, append(old, "The end\n"...)); got == "" {
		t.Error("of a line that is there twice it says nothing")
	}
}

var times = regexp.MustCompile(`[0-9.]+ (µs|ms)`)

// lasting is what the page says on every machine, or on every one with all servers.
func lasting(text []byte, all bool) []byte {
	text = times.ReplaceAll(text, []byte("time"))
	for _, k := range kinds {
		if k.release == 0 {
			continue
		}
		line := fmt.Sprintf(`(?m)^(\| %s \| [0-9]+(?:\.[0-9]+){%d})[0-9.]* `, k.name, k.release-1)
		text = regexp.MustCompile(line).ReplaceAll(text, []byte("$1 "))
		if !all {
			text = regexp.MustCompile(`(?m)^(\| `+k.name+` \|) [0-9.]+ `).ReplaceAll(text, []byte("$1 version "))
		}
	}
	return text
}

// The page's versions of servers that come with the system are compared by their lines of releases.
func TestFinding_O5_VersionsOfPackagedServersAreCompared(t *testing.T) {
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, k := range kinds {
		if k.release == 0 {
			continue
		}
		version := regexp.MustCompile(`(?m)^\| ` + k.name + ` \| ([0-9.]+) `).FindSubmatch(old)
		if version == nil {
			t.Errorf("%s isn't on the page", k.name)
			continue
		}
		numbers := strings.Split(string(version[1]), ".")
		for i := range numbers {
			others := slices.Clone(numbers)
			others[i] += "9"
			other := "| " + k.name + " | " + strings.Join(others, ".") + " "
			changed := bytes.Replace(old, version[0], []byte(other), 1)
			if same, want := bytes.Equal(lasting(changed, true), lasting(old, true)), i >= k.release; same != want {
				t.Errorf("%q for %q: the same: %t, want %t", other, version[0], same, want)
			}
			if !bytes.Equal(lasting(changed, false), lasting(old, false)) {
				t.Errorf("%q for %q differs where servers are missing", other, version[0])
			}
			tried++
		}
	}
	if tried < 5 {
		t.Errorf("%d versions were tried", tried)
	}
}

func openFile(t *testing.T) store.Store {
	st, err := file.Open(t.Context(), filepath.Join(t.TempDir(), "leases.db"), file.Options{})
	return opened(t, st, err)
}

func embedded(t *testing.T, name string, st store.Store) row {
	return row{
		engine: name, version: "built in", about: store.Describe(st), trips: "–",
		handover: handover(t, manager(t, st), manager(t, st)),
	}
}

func (k kind) row(t *testing.T) row {
	srv := k.start(t)
	inst := k.prepare(t, srv)
	m := newMeter(t, srv.Addr)
	st := inst.open(t, m.addr)
	return row{
		engine: k.name, version: k.version(t, srv, st), about: store.Describe(st), trips: trips(t, m, st),
		handover: handover(t, manager(t, inst.open(t, srv.Addr)), manager(t, inst.open(t, srv.Addr))),
	}
}

var (
	address = regexp.MustCompile(`[0-9.]+:[0-9]+`)
	number  = regexp.MustCompile(`[0-9]+\.[0-9]+(\.[0-9]+)?`)
)

// version is what the server says that it is.
func (k kind) version(t *testing.T, srv *servers.Server, st store.Store) string {
	t.Helper()
	for _, f := range st.(driver.Inspector).Inspect(t.Context()) {
		if f.What == "server" {
			if v := number.FindString(address.ReplaceAllString(f.Detail, "")); v != "" {
				return v
			}
		}
	}
	log, err := os.ReadFile(srv.LogFile())
	if v := regexp.MustCompile(`Version:\s+'?([0-9.]+)`).FindSubmatch(log); err == nil && v != nil {
		return string(v[1])
	}
	t.Errorf("%s doesn't say its version", k.name)
	return ""
}

func manager(t testing.TB, st store.Store) *lease.Manager {
	t.Helper()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// trips counts the round trips of acquiring a new name, acquiring a name whose last state is remembered, renewing, releasing.
func trips(t *testing.T, m *meter, st store.Store) string {
	t.Helper()
	mgr := manager(t, st)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	names := 0
	var held []*lease.Lease
	acquire := func(name string) {
		l, err := mgr.TryAcquire(t.Context(), name)
		must(err)
		held = append(held, l)
	}
	release := func() {
		must(held[len(held)-1].Release(t.Context()))
		held = held[:len(held)-1]
	}
	acquire("warm") // connections
	release()
	fresh := m.of(func() { names++; acquire(fmt.Sprint("new/", names)) })
	freed := m.of(release)
	again := m.of(func() { acquire(fmt.Sprint("new/", names)); names-- })
	rec, err := st.Put(t.Context(), store.Record{Key: "renewed", Owner: "a", Token: 1, TTL: time.Minute, Nonce: "0"})
	must(err)
	renew := m.of(func() {
		rec.Nonce += "x"
		rec, err = st.Put(t.Context(), rec)
		must(err)
	})
	return fmt.Sprintf("%d / %d / %d / %d", fresh, again, renew, freed)
}

// handover returns the median of the time from before a release until another manager, which was waiting, holds the name.
func handover(t *testing.T, one, other *lease.Manager) string {
	t.Helper()
	var took []time.Duration
	l, err := one.Acquire(t.Context(), "handover")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		type held struct {
			l   *lease.Lease
			at  time.Time
			err error
		}
		next := make(chan held, 1)
		go func() {
			l, err := other.Acquire(context.WithoutCancel(t.Context()), "handover")
			next <- held{l, time.Now(), err}
		}()
		time.Sleep(20 * time.Millisecond)
		start := time.Now()
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		h := <-next
		if h.err != nil {
			t.Fatal(h.err)
		}
		took = append(took, h.at.Sub(start))
		l, one, other = h.l, other, one
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(took)
	p50 := took[len(took)/2]
	if p50 < time.Millisecond {
		return fmt.Sprintf("%d µs", p50.Microseconds())
	}
	return fmt.Sprintf("%.1f ms", float64(p50.Microseconds())/1000)
}

// render returns the page. Its notes, on what the columns leave out, are for people to edit.
func render(rows []row, notes []byte) []byte {
	var b bytes.Buffer
	b.WriteString(`# Choose an engine

The tables compare the engines. [Stores](stores.md) has the URL of each.

` + "`go test ./internal/proof/engines -run TestTable -update`" + ` writes this page from measurements on the real servers, except
what the columns leave out. Each engine passes two suites against the version that the table names. One is the whole
conformance suite (store/storetest). The other is a run of faults of network and server (internal/proof/engines).

## The engines side by side

| engine | tested | consistency | fencing | waiting | age | round trips | hand-over |
|---|---|---|---|---|---|---|---|
`)
	for _, r := range rows {
		wait, age := "poll", "no"
		if r.about.Push {
			wait = "push"
		}
		if r.about.Age {
			age = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.engine, r.version, r.about.Consistency, r.about.Fencing, wait, age, r.trips, r.handover)
	}
	b.WriteString(`
### The columns

| column | is |
|---|---|
| fencing | linearizable, when no failure that the store survives loses an acknowledged write, so no token is given twice; per primary, when a failover may lose one. ` + "`lease.Options.Fencing`" + ` demands the former |
| waiting | push, when the server reports a change; poll, when the client has to ask |
| age | whether the engine vouches for the age of a record. If so, a process that has just started takes an abandoned name at once |
| round trips | to the server, for four operations: acquiring a new name / acquiring a name whose last state is remembered / renewing / releasing |
| hand-over | the median time from before a release until another, waiting client holds the name; on one machine, server and clients together |

`)
	b.Write(notes)
	b.WriteString(`## What a lease on each is worth

| engine | what a lease on it is worth |
|---|---|
`)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", r.engine, r.about.Guarantee)
	}
	return b.Bytes()
}
