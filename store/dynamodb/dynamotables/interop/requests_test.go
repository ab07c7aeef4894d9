package interop

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
	native "github.com/leasehold/leasehold/store/dynamodb"
)

var update = flag.Bool("update", false, "rewrite docs/dynamodb.md")

const page = "../../../../docs/dynamodb.md"

// counter counts requests on their way to the server, by whether they read or write. Rows here are below 1 KB: each write is
// a write unit, and each read a read unit, or half of one when it needn't be consistent.
type counter struct {
	url string

	mu            sync.Mutex
	reads, writes int
}

func newCounter(t testing.TB, target string) *counter {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{}
	proxy := httputil.NewSingleHostReverseProxy(u)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		c.mu.Lock()
		switch op {
		case "GetItem", "Query", "Scan":
			c.reads++
		case "PutItem", "UpdateItem", "DeleteItem":
			c.writes++
		}
		c.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

// during returns what f requests: "1 read, 1 write".
func (c *counter) during(f func()) string {
	c.mu.Lock()
	c.reads, c.writes = 0, 0
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for _, n := range []struct {
		count int
		what  string
	}{{c.reads, "read"}, {c.writes, "write"}} {
		switch {
		case n.count == 1:
			parts = append(parts, "1 "+n.what)
		case n.count > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n.count, n.what))
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// never is how long a lease is that nobody renews while the requests of something else are counted. Java's client has one beat for all
// that it holds, whenever that was acquired.
const never = time.Hour

// bill is a row of the page.
type bill struct{ who, acquire, refused, renew, release string }

// TestRequests counts what each operation costs, for the neighbours and for us, and sees that docs/dynamodb.md says so.
func TestRequests(t *testing.T) {
	rustSide.ready(t)
	javaSide.ready(t)
	goSide.ready(t)
	stalltest.Run(t, requests)
}

func requests(t testing.TB) {
	rows := []bill{
		ourBill(t, "Leasehold, its own table", func(t testing.TB) (*world, func(url string, ttl time.Duration) *lease.Manager) {
			w := rustSide.world(t)
			w.table += "-native"
			if _, err := native.Create(t.Context(), w.client, w.table); err != nil {
				t.Fatal(err)
			}
			return w, func(url string, ttl time.Duration) *lease.Manager {
				st, err := native.Open(t.Context(), newClient(t, url), w.table, native.Options{Attempt: time.Minute}) // no slow server is asked twice
				if err != nil {
					t.Fatal(err)
				}
				m, err := lease.NewManager(st, lease.Options{TTL: ttl})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _, _ = m.Close(), st.Close() })
				return m
			}
		}),
		theirBill(t, "dynamodb-lease 0.22 (Rust)", rustSide),
		theirBill(t, "AWS lock client 1.4 (Java)", javaSide),
		theirBill(t, "dynamolock 2.1 (Go)", goSide),
		admiralBill(t),
	}
	text := render(rows)
	old, err := os.ReadFile(page)
	if *update {
		err = os.WriteFile(page, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !*update && !bytes.Equal(old, text) {
		t.Errorf("docs/dynamodb.md is not what was counted: go test ./store/dynamodb/dynamotables/interop -run TestRequests -update\n%s", text)
	}
}

func ourBill(t testing.TB, who string, open func(t testing.TB) (*world, func(url string, ttl time.Duration) *lease.Manager)) bill {
	w, manager := open(t)
	c := newCounter(t, w.url)
	m, another := manager(c.url, never), manager(w.url, ttl)
	b := bill{who: who, renew: "1 write every TTL/3, for all leases of a session together; the session reads its leases every TTL/4: each of up to 16, or the table"}
	var l *lease.Lease
	b.acquire = c.during(func() { l = acquire(t, m, "new") })
	b.release = c.during(func() { release(t, l) })
	acquire(t, another, "taken")
	b.refused = c.during(func() { excluded(t, m, "taken") })
	b.acquire += "; " + c.during(func() { acquire(t, m, "new") }) + " when its last state is remembered"
	acquire(t, manager(c.url, ttl), "kept")
	if n := c.during(func() { time.Sleep(ttl) }); !strings.HasSuffix(n, " writes") {
		t.Errorf("%s: %s in a TTL of one lease", who, n)
	}
	return b
}

func theirBill(t testing.TB, who string, n neighbourhood) bill {
	w := n.world(t)
	another := n.start(t, w, "another")
	if !another.acquire("taken") {
		t.Fatal("not acquired")
	}
	c := newCounter(t, w.url)
	w.url = c.url
	they := n.startFor(t, w, "they", never)
	b := bill{who: who}
	b.acquire = c.during(func() {
		if !they.acquire("new") {
			t.Error("not acquired")
		}
	})
	b.refused = c.during(func() {
		acquire := they.acquire
		if c, waits := they.(*goClient); waits {
			acquire = c.atOnce
		}
		if acquire("taken") {
			t.Error("acquired what another holds")
		}
	})
	b.release = c.during(they.release)
	const quarter = "heartbeat (a quarter of the lease by default)"
	every := map[string]string{"dynamodb-lease": "TTL/2", "dynamodb-lock-client": quarter, "dynamolock": quarter}[n.name]
	b.renew = "1 write a lease every " + every
	keeper := n.start(t, w, "keeper")
	if !keeper.acquire("kept") {
		t.Error("not acquired")
	}
	if got := c.during(func() { time.Sleep(n.lease) }); !strings.Contains(got, "write") {
		t.Errorf("%s: %s while it holds", who, got)
	}
	return b
}

func admiralBill(t testing.TB) bill {
	w := admiralWorld(t)
	c := newCounter(t, w.url)
	a, other := newAdmiral(t, w, "a"), newAdmiral(t, w, "b")
	a.client, other.client = newClient(t, c.url), newClient(t, c.url)
	b := bill{who: "Admiral (its published tick; a read scans the table)", release: "none: it expires"}
	b.acquire = c.during(a.tick)
	b.renew = c.during(a.tick) + " a wait"
	b.refused = c.during(other.tick) + " a wait"
	return b
}

func render(rows []bill) []byte {
	var b bytes.Buffer
	b.WriteString(`# Compare what each operation costs on DynamoDB

` + "<!-- not run: it is a test or a measurement by itself -->\n\n```sh\ngo test ./store/dynamodb/dynamotables/interop -run TestRequests -update   # writes this page\n```" + `

Don't edit this page. The test counts the requests on their way to DynamoDB Local. With rows below 1 KB, a write is one write unit,
done or refused, and a strongly consistent read is one read unit. ` + "`leasehold cost`" + ` turns the units into dollars a month.

| | acquire a new name | acquire a name that another holds | keep | release |
|---|---|---|---|---|
`)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.who, r.acquire, r.refused, r.renew, r.release)
	}
	b.WriteString(`
A pair of ` + "`leasehold standby`" + ` on Admiral's table reads 15 times a minute and writes 4 times, with a waitTimeInSeconds of 15: the
active instance 5 reads and 4 writes, the passive one 10 reads. Counted by ` + "`TestFinding_D3_ReadsOfAPair`" + `; ` + "`pollSeconds`" + ` changes it
([Active and passive](standby.md)).
`)
	return b.Bytes()
}
