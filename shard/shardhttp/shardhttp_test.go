package shardhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/proof/shardtest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/shard/shardhttp"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a space with workers behind real servers on loopback.
type world struct {
	*shardtest.World
}

func newWorld(t *testing.T) *world { return &world{World: shardtest.New(t)} }

type worker struct {
	shardtest.Worker
	srv *httptest.Server

	instead atomic.Pointer[http.HandlerFunc] // of what a worker does
}

// join starts a worker whose handler counts what it accepts.
func (w *world) join(name string) *worker {
	w.T.Helper()
	p := &worker{}
	var handler http.Handler
	ready := make(chan struct{})
	p.srv = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		<-ready
		w.Hit(name)
		if h := p.instead.Load(); h != nil {
			(*h)(rw, r)
			return
		}
		handler.ServeHTTP(rw, r)
	}))
	p.Worker = w.Join(name, p.srv.Listener.Addr().String())
	handler = shardhttp.Handler(p.Owner, http.HandlerFunc(w.accept), shardhttp.Options{})
	close(ready)
	w.T.Cleanup(p.srv.Close)
	return p
}

// accept is the program behind the handler.
func (w *world) accept(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	if err := w.Accept(shardhttp.Slice(r.Context()), string(body)); err != nil {
		shardhttp.Refuse(rw, err)
	}
}

// client returns a client of its own connections.
func client(t *testing.T, r *shard.Router) *http.Client { return waiting(t, r, 0) }

// impatient returns a client that doesn't wait for an owner.
func impatient(t *testing.T, r *shard.Router) *http.Client { return waiting(t, r, -1) }

func waiting(t *testing.T, r *shard.Router, within time.Duration) *http.Client {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: shardhttp.Transport(base, r, shardhttp.Options{Wait: within})}
}

func request(t *testing.T, key string, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://orders/write", body)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set(shardhttp.KeyHeader, key)
	}
	return r
}

// write sends a request, and returns the code of the answer; 0 after an error.
func write(t *testing.T, c *http.Client, key, text string) (int, error) {
	resp, err := c.Do(request(t, key, strings.NewReader(text)))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return resp.StatusCode, nil
}

// While slices move to and fro, what a caller was told is written was written once, by the owner, and nothing else was.
func TestMovesWhileRequestsRun(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	r := w.Router()
	w.Until("all keys have an owner", func() bool {
		for _, k := range shardtest.Names {
			_, x := a.Check(k)
			_, y := b.Check(k)
			if x != nil && y != nil {
				return false
			}
		}
		return true
	})
	w.WritesWhileMoved(a.Worker, b.Worker, func() func(key, text string) error {
		c := client(t, r)
		return func(key, text string) error { // the transport waits for the next owner
			code, err := write(t, c, key, text)
			if err == nil && code != http.StatusOK {
				err = errors.New(http.StatusText(code))
			}
			return err
		}
	})
}

// A caller whose router is late is told the owner by the wrong worker, once, and its request arrives there.
func TestAWrongOwnerOnce(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.Owns(a.Worker, "k0")
	r := w.Router()
	r.Close() // it knows what it knows
	w.Move("k0", b.Worker)
	w.Owns(b.Worker, "k0")
	w.Until("a knows the owner", func() bool {
		var wrong *shard.WrongOwner
		_, err := a.Check("k0")
		return errors.As(err, &wrong) && wrong.Now == b.srv.Listener.Addr().String()
	})
	c := client(t, r)
	if code, err := write(t, c, "k0", "x"); code != http.StatusOK || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	if got := w.Asked(); got != "a b" || w.Count("x") != 1 {
		t.Errorf("asked %s; accepted %d times", got, w.Count("x"))
	}

	// Its answer stands where the request can't be sent again.
	resp, err := c.Do(request(t, "k0", io.MultiReader(strings.NewReader("y"))))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body shardhttp.Refusal
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	if owner := b.srv.Listener.Addr().String(); resp.StatusCode != http.StatusMisdirectedRequest || resp.Header.Get(shardhttp.OwnerHeader) != owner ||
		body.Error != "wrong_owner" || body.Owner != owner || body.Token == 0 || w.Count("y") != 0 {
		t.Errorf("%s, %v, %+v", resp.Status, resp.Header, body)
	}
}

// A request whose worker has gone goes to the next owner, though the router is late.
func TestAWorkerThatHasGone(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.Owns(a.Worker, "k0")
	r := w.Router()
	r.Close()
	if err := a.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Owns(b.Worker, shardtest.Names...)
	a.srv.Close()
	if code, err := write(t, client(t, r), "k0", "x"); code != http.StatusOK || err != nil || w.Count("x") != 1 {
		t.Errorf("%d, %v; accepted %d times", code, err, w.Count("x"))
	}
	// Nobody is there any more: nothing is sent twice to the same worker.
	before := w.Asked()
	b.srv.Close()
	if _, err := write(t, impatient(t, r), "k0", "y"); err == nil || w.Asked() != before {
		t.Errorf("%v, %q", err, w.Asked())
	}
}

// A request is not sent again where the first worker may have carried it out, or nobody else owns its key.
func TestNothingIsSentInVain(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.Owns(a.Worker, "k0")
	self := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { // as while the slice is drained
		shardhttp.Refuse(rw, &shard.WrongOwner{Now: a.srv.Listener.Addr().String()})
	})
	a.instead.Store(&self)
	r := w.Router()
	if code, err := write(t, impatient(t, r), "k0", "x"); code != http.StatusMisdirectedRequest || err != nil || w.Asked() != "a" {
		t.Errorf("%d, %v; asked %q", code, err, w.Asked())
	}
	other := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusMisdirectedRequest) }) // of a proxy
	a.instead.Store(&other)
	r.Close()
	w.Move("k0", b.Worker)
	w.Owns(b.Worker, "k0")
	if code, err := write(t, impatient(t, r), "k0", "y"); code != http.StatusMisdirectedRequest || err != nil || w.Asked() != "a a" {
		t.Errorf("%d, %v; asked %q", code, err, w.Asked())
	}
	breaks := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }) // the connection breaks
	a.instead.Store(&breaks)
	if code, err := write(t, impatient(t, r), "k0", "z"); err == nil || w.Asked() != "a a a" {
		t.Errorf("%d, %v; asked %q", code, err, w.Asked())
	}
}

var thenB = regexp.MustCompile(`^(a )+b( b)*$`)

// A request waits while its slice is drained, and is then carried out once, by the next owner.
func TestARequestWaitsForTheNextOwner(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.Owns(a.Worker, "k0")
	r := w.Router()
	var asked atomic.Int32
	self := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { // as while the slice is drained
		if asked.Add(1) == 3 {
			w.Move("k0", b.Worker)
		}
		shardhttp.Refuse(rw, &shard.WrongOwner{Now: a.srv.Listener.Addr().String()})
	})
	a.instead.Store(&self)
	// The router may hear of the owner before the owner does: then b is asked again.
	if code, err := write(t, client(t, r), "k0", "x"); code != http.StatusOK || err != nil || w.Count("x") != 1 || !thenB.MatchString(w.Asked()) {
		t.Errorf("%d, %v; accepted %d times; asked %q", code, err, w.Count("x"), w.Asked())
	}

	// The answer stands when the time is over, or the caller's is.
	b.instead.Store(&self)
	if code, err := write(t, waiting(t, r, 30*time.Millisecond), "k0", "y"); code != http.StatusMisdirectedRequest || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	resp, err := waiting(t, r, time.Hour).Do(request(t, "k0", strings.NewReader("z")).WithContext(ctx))
	if err == nil {
		defer resp.Body.Close()
	}
	if err == nil && resp.StatusCode != http.StatusMisdirectedRequest || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, %v", resp, err)
	}
	if w.Count("y") != 0 || w.Count("z") != 0 {
		t.Error("it was written all the same")
	}
}

// Where no worker owns a key, or its worker was ended, a request waits for the next.
func TestARequestWaitsForAWorker(t *testing.T) {
	w := newWorld(t)
	a := w.join("a")
	w.Owns(a.Worker, "k0")
	r := w.Router()
	c := client(t, r)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a.srv.Close()
	if _, err := write(t, waiting(t, r, 30*time.Millisecond), "k0", "x"); err == nil {
		t.Error("a request without a worker succeeded")
	}
	done := make(chan error, 1)
	go func() {
		code, err := write(t, c, "k0", "y")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("code %d", code)
		}
		done <- err
	}()
	b := w.join("b")
	// The router may hear of the owner before the owner does: then b is asked again.
	if err := <-done; err != nil || w.Count("y") != 1 || w.Count("x") != 0 || strings.Trim(w.Asked(), "b ") != "" {
		t.Errorf("%v; accepted %d times; asked %q of %s", err, w.Count("y"), w.Asked(), b.Name)
	}
}

// deaf is a store whose reads may fail, while its pushes come.
type deaf struct {
	*memory.Store
	fails atomic.Bool
}

func (d *deaf) Get(ctx context.Context, key string) (store.Record, error) {
	if d.fails.Load() {
		return store.Record{}, errDeaf
	}
	return d.Store.Get(ctx, key)
}

var errDeaf = errors.New("the store doesn't answer")

// A request waits for the router's push where the store can't be read; its error says so when the time is over.
func TestARequestWaitsThoughTheStoreFails(t *testing.T) {
	w := newWorld(t)
	m, err := lease.NewManager(w.St, lease.Options{TTL: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o, err := shard.Join(t.Context(), m, shard.Space{Name: "s", Names: shardtest.Names}, shard.Worker{Bystander: true}) // nobody gives it anything
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	st := &deaf{Store: w.DB.Open()}
	defer st.Close()
	r, err := shard.NewRouter(t.Context(), st, "s", shard.RouterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	st.fails.Store(true)
	if _, err := write(t, waiting(t, r, 30*time.Millisecond), "k0", "x"); !errors.Is(err, shard.ErrWrongOwner) || !errors.Is(err, errDeaf) {
		t.Errorf("without an owner: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := write(t, client(t, r), "k0", "y")
		done <- err
	}()
	b := w.join("b")
	w.Owns(b.Worker, "k0")
	// The address of b isn't known yet: the router reads it.
	st.fails.Store(false)
	if err := <-done; err != nil || w.Count("y") != 1 {
		t.Errorf("%v; accepted %d times", err, w.Count("y"))
	}
}

// Keys that nobody can own, and requests without a key, aren't sent; who sends them by itself is refused.
func TestKeysThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	a := w.join("a")
	w.Owns(a.Worker, shardtest.Names...)
	c := client(t, w.Router())
	if _, err := write(t, c, "other", "x"); !errors.Is(err, shard.ErrWrongOwner) {
		t.Errorf("a name that isn't in the space: %v", err)
	}
	if _, err := write(t, c, "", "x"); !errors.Is(err, shardhttp.ErrNoKey) {
		t.Errorf("no key: %v", err)
	}
	two := request(t, "k0", nil)
	two.Header.Add(shardhttp.KeyHeader, "k1")
	if _, err := c.Do(two); !errors.Is(err, shardhttp.ErrNoKey) { //nolint:bodyclose // there is none
		t.Errorf("two keys: %v", err)
	}
	if w.Asked() != "" {
		t.Errorf("asked %q", w.Asked())
	}
	for _, c := range []struct {
		keys  []string
		code  int
		error string
	}{
		{nil, http.StatusBadRequest, "key_missing"},
		{[]string{"k0", "k1"}, http.StatusBadRequest, "key_missing"},
		{[]string{"other"}, http.StatusMisdirectedRequest, "wrong_owner"},
	} {
		rec, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Header[shardhttp.KeyHeader] = c.keys
		a.srv.Config.Handler.ServeHTTP(rec, r)
		var body shardhttp.Refusal
		if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || rec.Code != c.code || body.Error != c.error {
			t.Errorf("%q: %d, %s", c.keys, rec.Code, rec.Body)
		}
	}
}

// The context of a request ends when its slice leaves the worker.
func TestARequestEndsWithItsSlice(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.Owns(a.Worker, "k0")
	entered, left := make(chan struct{}), make(chan error, 1)
	h := shardhttp.Handler(a.Owner, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		left <- context.Cause(r.Context())
	}), shardhttp.Options{Key: func(*http.Request) string { return "k0" }})
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}()
	<-entered
	w.Move("k0", b.Worker)
	if err := <-left; !errors.Is(err, shard.ErrMoved) {
		t.Errorf("the cause is %v", err)
	}
	<-done
}
