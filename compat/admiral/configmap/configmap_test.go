package configmap_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/compat/admiral/configmap"
)

// api is the part of the API server that has to do with one ConfigMap, with its resource versions.
type api struct {
	mu      sync.Mutex
	obj     map[string]any
	version int
	refuse  int
	writes  int
	before  func() // called before a write is looked at
}

const path = "/api/v1/namespaces/admiral-sync/configmaps"

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && a.before != nil {
		a.before()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	status := func(code int, text string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "message": text})
	}
	var in map[string]any
	if b, _ := io.ReadAll(r.Body); len(b) > 0 {
		if err := json.Unmarshal(b, &in); err != nil {
			status(http.StatusBadRequest, err.Error())
			return
		}
	}
	switch {
	case a.refuse != 0:
		status(a.refuse, "configmaps is forbidden")
	case r.Method == http.MethodGet && r.URL.Path == path+"/addresses" && a.obj == nil:
		status(http.StatusNotFound, "not found")
	case r.Method == http.MethodGet && r.URL.Path == path+"/addresses":
		_ = json.NewEncoder(w).Encode(a.obj)
	case r.Method == http.MethodPost && r.URL.Path == path && a.obj != nil:
		status(http.StatusConflict, "already exists")
	case r.Method == http.MethodPost && r.URL.Path == path:
		a.store(in)
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut && r.URL.Path == path+"/addresses" && a.obj == nil:
		status(http.StatusNotFound, "not found")
	case r.Method == http.MethodPut && in["metadata"].(map[string]any)["resourceVersion"] != fmt.Sprint(a.version):
		status(http.StatusConflict, "the object has been modified")
	case r.Method == http.MethodPut && r.URL.Path == path+"/addresses":
		a.store(in)
	default:
		status(http.StatusNotFound, r.URL.Path)
	}
}

func (a *api) store(in map[string]any) {
	a.version++
	a.writes++
	in["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(a.version)
	a.obj = in
}

func serve(t *testing.T, a *api) *configmap.Store {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	st, err := configmap.New(server.Client(), server.URL, "admiral-sync", "addresses")
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestConfigMap(t *testing.T) {
	a := &api{}
	st := serve(t, a)
	text, version, err := st.Load(t.Context())
	if err != nil || text != "" {
		t.Fatal(text, version, err)
	}
	if err := st.Save(t.Context(), "one", version); err != nil {
		t.Fatal(err)
	}
	if err := st.Save(t.Context(), "again", version); !errors.Is(err, admiral.ErrChanged) {
		t.Errorf("made twice: %v", err)
	}
	a.obj["data"].(map[string]any)["other"] = "kept"
	a.obj["metadata"].(map[string]any)["labels"] = map[string]any{"team": "mesh"}
	text, version, err = st.Load(t.Context())
	if err != nil || text != "one" {
		t.Fatal(text, version, err)
	}
	if err := st.Save(t.Context(), "two", version); err != nil {
		t.Fatal(err)
	}
	if err := st.Save(t.Context(), "late", version); !errors.Is(err, admiral.ErrChanged) {
		t.Errorf("on an old version: %v", err)
	}
	data := a.obj["data"].(map[string]any)
	if data[admiral.AddressKey] != "two" || data["other"] != "kept" || a.obj["metadata"].(map[string]any)["labels"] == nil {
		t.Errorf("%v", a.obj)
	}
	a.obj = nil
	if err := st.Save(t.Context(), "three", version); !errors.Is(err, admiral.ErrChanged) {
		t.Errorf("of one that was deleted: %v", err)
	}
}

// TestTheServerDecides: a change between the store's own look and its write is met by the resource version.
func TestTheServerDecides(t *testing.T) {
	a := &api{}
	st := serve(t, a)
	if err := st.Save(t.Context(), "one", ""); err != nil {
		t.Fatal(err)
	}
	_, version, err := st.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.before = func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.version++
		a.obj["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(a.version)
	}
	if err := st.Save(t.Context(), "late", version); !errors.Is(err, admiral.ErrChanged) {
		t.Errorf("%v", err)
	}
	if a.writes != 1 {
		t.Errorf("%d writes", a.writes)
	}
}

func TestAllocation(t *testing.T) {
	a := &api{}
	st := serve(t, a)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[string]bool{}
	for n := range 4 {
		wg.Go(func() {
			al, err := admiral.NewAllocator(st, "240.0")
			if err != nil {
				t.Error(err)
				return
			}
			for k := range 20 {
				address, err := al.Address(t.Context(), fmt.Sprint("s", n, "-", k))
				for errors.Is(err, admiral.ErrChanged) {
					address, err = al.Address(t.Context(), fmt.Sprint("s", n, "-", k))
				}
				mu.Lock()
				if err != nil || got[address] {
					t.Errorf("%s handed out twice, or %v", address, err)
				}
				got[address] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestRefusals(t *testing.T) {
	a := &api{refuse: http.StatusForbidden}
	_, _, err := serve(t, a).Load(t.Context())
	for _, want := range []string{"admiral-sync/addresses", "403", "forbidden", "get, create and update"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
	for _, c := range []struct{ server, namespace, name, want string }{
		{"kubernetes", "n", "m", "server"}, {"https://k", "", "m", "sync_namespace"}, {"https://k", "n", "a/b", "se_address_configmap"},
	} {
		if _, err := configmap.New(http.DefaultClient, c.server, c.namespace, c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
