package admiral_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// running runs a checker of that name on a store in memory until stop is called.
func running(t *testing.T, name string, open func(context.Context, admiral.Config) (store.Store, error)) (s *admiral.State, stop func()) {
	t.Helper()
	c, err := admiral.Checkers().New(name, admiral.Params{Config: config("a"), Store: open, Table: open})
	if err != nil {
		t.Fatal(err)
	}
	s = admiral.NewState(nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, s) }()
	return s, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func inMemory(context.Context, admiral.Config) (store.Store, error) {
	return memory.New(memory.Options{}), nil
}

// until waits for a state that ok accepts.
func until(t *testing.T, s *admiral.State, ok func(admiral.Status) bool) admiral.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	st := s.Status()
	for !ok(st) {
		var err error
		if st, err = s.Changed(ctx, st.Seq); err != nil {
			t.Fatalf("%v: %+v", err, st)
		}
	}
	return st
}

func active(st admiral.Status) bool { return !st.ReadOnly }

func TestRegistry(t *testing.T) {
	r := admiral.Checkers()
	for _, name := range []string{admiral.NoOP, "noopSTATEchecker", admiral.DynamoDB, "DynamoDBBasedStateChecker", "Leasehold"} {
		if _, err := r.New(name, admiral.Params{Config: config("a"), Store: inMemory, Table: inMemory}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := r.New("dynamodb", admiral.Params{})
	for _, want := range append(r.Names(), `"dynamodb"`) {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
	own := func(admiral.Params) (admiral.StateChecker, error) { return mine{}, nil }
	if err := r.Add("LEASEHOLD", own); err == nil {
		t.Error("a second checker of one name was taken")
	}
	if err := r.Add("mine", own); err != nil {
		t.Fatal(err)
	}
	if c, err := r.New("Mine", admiral.Params{}); err != nil || c != (mine{}) {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := admiral.Checkers().New("mine", admiral.Params{}); err == nil {
		t.Error("a checker that was added to one registry is in another")
	}
	for _, name := range []string{admiral.DynamoDB, admiral.Leasehold} {
		if _, err := r.New(name, admiral.Params{Config: config("a")}); err == nil {
			t.Errorf("%s: nothing opens its store", name)
		}
	}
}

type mine struct{}

func (mine) Run(ctx context.Context, _ *admiral.State) error { <-ctx.Done(); return nil }

func TestNoOPIsAlwaysActive(t *testing.T) {
	s, stop := running(t, admiral.NoOP, nil)
	st := until(t, s, active)
	term, err := s.Guard(t.Context())
	if err != nil || term.Check() != nil || term.Token() != 0 || term.Left() != math.MaxInt64 || !st.Initialized {
		t.Errorf("%+v, %v", st, err)
	}
	stop()
	if term.Check() == nil || term.Left() != 0 || !s.Status().ReadOnly {
		t.Errorf("after the end: %v, %v left, %+v", term.Check(), term.Left(), s.Status())
	}
}

// TestOpenIsTriedAgain: a store that can't be opened, a role that can't be assumed, means read-only with the reason.
func TestOpenIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		clk := clocktest.New(0)
		c, err := admiral.New(func(ctx context.Context) (store.Store, error) {
			if tries++; tries < 4 {
				return nil, errors.New("sts: AccessDenied")
			}
			return inMemory(ctx, admiral.Config{})
		}, config("a"), admiral.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		s := admiral.NewState(clk)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx, s) }()
		time.Sleep(2*wait + time.Second)
		if st := s.Status(); !st.ReadOnly || st.Initialized || !strings.Contains(st.Reason, "AccessDenied") {
			t.Errorf("%+v", st)
		}
		time.Sleep(wait)
		if st := s.Status(); st.ReadOnly {
			t.Errorf("after %d tries: %+v", tries, st)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestGuardedRequests: what only reads passes always; what writes, only while active, and no longer.
func TestGuardedRequests(t *testing.T) {
	arrived := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.Method
		if r.URL.Path == "/slow" {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	s, stop := running(t, admiral.Leasehold, inMemory)
	client := &http.Client{Transport: admiral.RoundTripper(s, nil)}
	defer client.CloseIdleConnections()
	do := func(method, path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		return client.Do(req)
	}
	methods := []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}
	until(t, s, active)
	for _, m := range methods {
		resp, err := do(m, "/")
		if err != nil {
			t.Fatalf("%s while active: %v", m, err)
		}
		_ = resp.Body.Close()
		<-arrived
	}
	slow, err := do("POST", "/slow")
	if err != nil {
		t.Fatal(err)
	}
	<-arrived
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	if _, err := io.ReadAll(slow.Body); err == nil {
		t.Error("a write went on after the end of its term")
	}
	_ = slow.Body.Close()
	<-stopped
	for _, m := range methods {
		resp, err := do(m, "/")
		if err == nil {
			_ = resp.Body.Close()
		}
		if reads := m == "GET" || m == "HEAD" || m == "OPTIONS"; (err == nil) != reads || !reads && !errors.Is(err, admiral.ErrReadOnly) {
			t.Errorf("%s while passive: %v", m, err)
		}
	}
	if len(arrived) != 3 {
		t.Errorf("%d requests arrived while passive, 3 read", len(arrived))
	}
}

// TestHealth holds the endpoints to their table.
func TestHealth(t *testing.T) {
	s, stop := running(t, admiral.Leasehold, inMemory)
	h := admiral.Handler(s)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w
	}
	check := func(active bool) {
		t.Helper()
		for path, want := range map[string][2]int{ // passive, active
			"/health/ready":                       {200, 200},
			"/health/ready?checkifreadonly=true":  {503, 200},
			"/health/ready?checkifreadonly=1":     {503, 200},
			"/health/ready?checkifreadonly=false": {200, 200},
			"/health/ready?checkifreadonly=maybe": {400, 400},
			"/health/ready?checkifreadonly=":      {400, 400},
			"/active":                             {503, 200},
			"/standby":                            {200, 503},
			"/elsewhere":                          {404, 404},
		} {
			code := want[0]
			if active {
				code = want[1]
			}
			if w := get(path); w.Code != code {
				t.Errorf("active %v: %s: %d %s, want %d", active, path, w.Code, w.Body, code)
			}
		}
	}
	until(t, s, active)
	check(true)
	var r admiral.Report
	if err := json.Unmarshal(get("/state").Body.Bytes(), &r); err != nil || r.State != "active" || r.Lease != leaseName || r.Pod != "a" ||
		!strings.HasPrefix(r.Owner, "a/") || r.Token == 0 || r.Since == nil || r.ExpiresIn < 30 || r.ExpiresIn > ttl.Seconds() {
		t.Errorf("%+v, %v", r, err)
	}
	stop()
	check(false)
	var passive admiral.Report
	if err := json.Unmarshal(get("/state").Body.Bytes(), &passive); err != nil || passive.State != "passive" || passive.Reason == "" {
		t.Errorf("%+v, %v", passive, err)
	}
}

func TestFlags(t *testing.T) {
	fs := flag.NewFlagSet("admiral", flag.ContinueOnError)
	fs.SetOutput(new(bytes.Buffer))
	f := admiral.AddFlags(fs)
	want := admiral.Flags{
		CheckerName: "NoOPStateChecker", Prefix: "240.0", SyncPeriod: 5 * time.Minute, ConfigMap: "se-address-configmap", Namespace: "admiral-sync",
	}
	if err := fs.Parse(nil); err != nil || *f != want {
		t.Errorf("%+v, %v", *f, err)
	}
	err := fs.Parse([]string{"--admiral_state_checker_name", "leasehold", "--dr_state_store_config_path=/c", "--se_ip_prefix=auto", "--sync_period=1s"})
	if err != nil || f.CheckerName != "leasehold" || f.ConfigPath != "/c" || f.Prefix != "auto" || f.SyncPeriod != time.Second {
		t.Errorf("%+v, %v", *f, err)
	}
}

// TestStatusAtTheInstant: renewals leave an active instance active, and it is read-only when its validity has ended though
// nothing of it has run since.
func TestStatusAtTheInstant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		time.Sleep(2 * ttl)
		if st := a.state.Status(); st.ReadOnly || st.Reason != "" || !st.Initialized || st.Owner == "" || st.ExpiresIn <= 0 || st.ExpiresIn > ttl {
			t.Errorf("active: %+v", st)
		}
		a.sigstop()
		time.Sleep(ttl)
		if st := a.state.Status(); !st.ReadOnly || st.Reason == "" || st.ExpiresIn != 0 {
			t.Errorf("after its validity: %+v", st)
		}
		a.sigcont()
	})
}
