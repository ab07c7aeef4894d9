package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/dynamodb"
)

// units counts requests and what they take.
type units struct {
	mu sync.Mutex
	tally
}

type tally struct {
	reads, writes         int // requests
	readUnits, writeUnits float64
}

func (u *units) count(r dynamodb.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch r.Operation {
	case "GetItem", "Scan":
		u.reads++
		u.readUnits += r.Read
	case "PutItem", "DeleteItem":
		u.writes++
		u.writeUnits += r.Write
	}
}

// take returns what was counted, and begins anew.
func (u *units) take() tally {
	u.mu.Lock()
	defer u.mu.Unlock()
	was := u.tally
	u.tally = tally{}
	return was
}

// dynamoDBTable makes a table on a DynamoDB Local of the test's own, and returns a function that opens it through url, or
// directly where that is "".
func dynamoDBTable(t testing.TB) (srv *servers.Server, open func(url string, onRequest func(dynamodb.Request)) *dynamodb.Store) {
	t.Helper()
	srv = servers.DynamoDB(t)
	client := func(url string) *awsdynamodb.Client {
		transport := &http.Transport{MaxIdleConnsPerHost: 64}
		t.Cleanup(transport.CloseIdleConnections)
		return awsdynamodb.New(awsdynamodb.Options{
			Region: "us-east-1", BaseEndpoint: &url, HTTPClient: &http.Client{Transport: transport},
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
			}),
		})
	}
	if _, err := dynamodb.Create(t.Context(), client(srv.URL), "leases"); err != nil {
		t.Fatal(err)
	}
	return srv, func(url string, onRequest func(dynamodb.Request)) *dynamodb.Store {
		if url == "" {
			url = srv.URL
		}
		st, err := dynamodb.Open(t.Context(), client(url), "leases", dynamodb.Options{OnRequest: onRequest})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		return st
	}
}

func newManager(t testing.TB, st *dynamodb.Store, opts lease.Options) *lease.Manager {
	t.Helper()
	m, err := lease.NewManager(st, opts)
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

func must(t testing.TB) func(*lease.Lease, error) *lease.Lease {
	return func(l *lease.Lease, err error) *lease.Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// What each operation takes of a DynamoDB table, counted at the client: requests, read and write units.
func TestDynamoDBUnits(t *testing.T) { stalltest.Run(t, dynamoDBUnits) }

func dynamoDBUnits(t testing.TB) {
	_, open := dynamoDBTable(t)
	var u units
	quiet := lease.Options{TTL: 10 * time.Minute} // no renewal comes in between
	m, other := newManager(t, open("", u.count), quiet), newManager(t, open("", nil), quiet)
	u.take()
	table := [][5]string{{"operation", "reads", "writes", "read units", "write units"}}
	row := func(what string, reads, writes int) {
		t.Helper()
		got := u.take()
		table = append(table, [5]string{what, fmt.Sprint(got.reads), fmt.Sprint(got.writes), fmt.Sprint(got.readUnits), fmt.Sprint(got.writeUnits)})
		if got.reads != reads || got.writes != writes || got.readUnits != float64(reads) || got.writeUnits != float64(writes) {
			t.Errorf("%s: %d reads, %d writes, %v read units, %v write units; want %d and %d of each",
				what, got.reads, got.writes, got.readUnits, got.writeUnits, reads, writes)
		}
	}
	l := must(t)(m.Acquire(t.Context(), "job"))
	row("acquire, unknown name", 2, 1) // and where a version before kinds kept the locks of a name
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	row("release", 0, 1)
	l = must(t)(m.Acquire(t.Context(), "job"))
	row("acquire, remembered name", 0, 1)
	for range 10 { // a full past, of one's own
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		l = must(t)(m.Acquire(t.Context(), "job"))
	}
	u.take()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	row("release, with 8 past terms", 0, 1)
	must(t)(other.Acquire(t.Context(), "job"))
	u.take()
	if _, err := m.TryAcquire(t.Context(), "job"); !errors.As(err, new(*lease.HeldError)) {
		t.Fatalf("%v, want a *HeldError", err)
	}
	row("try, remembered, another was faster", 0, 1)
	if _, err := m.TryAcquire(t.Context(), "job"); err == nil {
		t.Fatal("acquired")
	}
	row("try, another holds it", 1, 0)
	renewals(t, open, row, &u)
	session(t, open, row, &u)
	fmt.Fprint(os.Stdout, formatted(table))
}

func formatted(table [][5]string) string {
	var b strings.Builder
	for _, r := range table {
		fmt.Fprintf(&b, "%-40s %6s %7s %11s %12s\n", r[0], r[1], r[2], r[3], r[4])
	}
	return b.String()
}

type openTable = func(string, func(dynamodb.Request)) *dynamodb.Store

// renewals waits for some renewals of a lease.
func renewals(t testing.TB, open openTable, row func(string, int, int), u *units) {
	const n = 3
	var seen atomic.Int64
	enough := make(chan struct{})
	m := newManager(t, open("", func(r dynamodb.Request) {
		if k := seen.Add(1); k >= 3 && k < 3+n { // after the acquisition's
			u.count(r)
			if k == 3+n-1 {
				close(enough)
			}
		}
	}), lease.Options{TTL: 9 * time.Second})
	seen.Store(0) // from here on: a read, a write, renewals
	u.take()
	l := must(t)(m.Acquire(t.Context(), "renewed"))
	select {
	case <-enough:
	case <-time.After(patienceOfTests):
		t.Fatal("no renewals")
	}
	row(fmt.Sprintf("%d renewals", n), 0, n)
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// session holds many leases in one session, and counts what keeps them alive.
func session(t testing.TB, open openTable, row func(string, int, int), u *units) {
	leases := 1000
	if testing.Short() {
		leases = 100
	}
	// The session's time passes slowly at first: how fast this server takes the crowd must not decide whether it lasts.
	clk := clocktest.New(0)
	clk.SetRate(1.0 / 20)
	var counting atomic.Bool
	renewed := make(chan struct{}, 100)
	var looks units
	m := newManager(t, open("", func(r dynamodb.Request) {
		switch {
		case !counting.Load():
		case r.Operation == "PutItem":
			u.count(r)
			renewed <- struct{}{}
		default:
			looks.count(r)
		}
	}), lease.Options{TTL: 15 * time.Second, Clock: clk})
	s, err := m.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const workers = 32
	held := make([]*lease.Lease, leases)
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < leases && errs[w] == nil; i += workers {
				held[i], errs[w] = s.Acquire(t.Context(), fmt.Sprintf("shard/%d", i))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	u.take()
	counting.Store(true)
	clk.SetRate(1)
	for range 2 {
		select {
		case <-renewed:
		case <-time.After(patienceOfTests):
			t.Fatal("no renewals")
		}
	}
	counting.Store(false)
	row(fmt.Sprintf("2 renewals of a session, %d leases", leases), 0, 2)
	// In that time it looked at the leases up to three times, by a Scan, which takes a unit for each 4 KiB of the table.
	if got := looks.take(); got.writes > 0 || got.reads > 6 || got.readUnits > 3*float64(leases)/10 {
		t.Errorf("looks at %d leases: %+v", leases, got)
	}
	for _, l := range held {
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// A lease outlives a time of throttling that is shorter than what is left of its validity.
func TestDynamoDBThrottlingLosesNothing(t *testing.T) {
	stalltest.Run(t, dynamoDBThrottlingLosesNothing)
}

func dynamoDBThrottlingLosesNothing(t testing.TB) {
	srv, open := dynamoDBTable(t)
	target, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	var throttle atomic.Bool
	var refused atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy.Transport, proxy.ErrorLog = transport, log.New(io.Discard, "", 0)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !throttle.Load() {
			proxy.ServeHTTP(w, r)
			return
		}
		refused.Add(1)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = bytes.NewBufferString(`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`).WriteTo(w)
	}))
	t.Cleanup(front.Close)
	var mu sync.Mutex
	var states []lease.State
	m := newManager(t, open(front.URL, nil), lease.Options{TTL: 15 * time.Second, OnEvent: func(e lease.Event) {
		mu.Lock()
		defer mu.Unlock()
		states = append(states, e.State)
	}})
	l := must(t)(m.Acquire(t.Context(), "job"))
	// Throttled from before the next renewal on, for most of the validity of 12 s that the acquisition gave.
	throttle.Store(true)
	before := l.ValidUntil()
	time.Sleep(8 * time.Second)
	if err := l.Check(); err != nil {
		t.Errorf("while throttled: %v", err)
	}
	throttle.Store(false)
	for deadline := time.Now().Add(patienceOfTests); l.ValidUntil() == before; time.Sleep(5 * time.Millisecond) {
		if err := l.Check(); err != nil || time.Now().After(deadline) {
			t.Fatalf("after it: %v", err)
		}
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []lease.State{lease.StateHeld, lease.StateJeopardy, lease.StateHeld, lease.StateReleased}; fmt.Sprint(states) != fmt.Sprint(want) {
		t.Errorf("its states were %v, want %v", states, want)
	}
	if refused.Load() == 0 {
		t.Error("nothing was throttled")
	}
}
