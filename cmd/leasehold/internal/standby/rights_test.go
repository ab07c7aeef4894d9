//go:build !lite

package standby_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/pair"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/standby"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb"
	"github.com/leasehold/leasehold/store/open"
)

// ledger is what was asked of the table: the keys by operation; "" for those about the table as a whole.
type ledger struct {
	mu   sync.Mutex
	made map[string]map[string]bool
}

// front stands before the table, and notes each request.
func (l *ledger) front(t testing.TB, target, key string) string {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			t.Error(err)
		}
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
		var in struct {
			Key, Item map[string]struct{ S string }
		}
		if err := json.Unmarshal(body, &in); err != nil {
			t.Error(err)
		}
		name := in.Key[key].S
		if in.Item != nil {
			name = in.Item[key].S
		}
		_, op, _ := strings.Cut(r.In.Header.Get("X-Amz-Target"), ".")
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.made["dynamodb:"+op] == nil {
			l.made["dynamodb:"+op] = map[string]bool{}
		}
		l.made["dynamodb:"+op][name] = true
	}})
	t.Cleanup(srv.Close)
	return srv.URL
}

// covered sees that the policy allows each request, and that each of its actions was needed, and each of its patterns.
func (l *ledger) covered(t testing.TB, r pair.Role) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	used := map[string]bool{}
	for op, keys := range l.made {
		for key := range keys {
			allowed := false
			for _, s := range r.Statements {
				if !slices.Contains(s.Actions, op) {
					continue
				}
				if len(s.Keys) == 0 {
					allowed, used[op] = true, true
				}
				for _, pattern := range s.Keys {
					// IAM's "*" also stands for a slash, which is replaced here.
					flat := strings.NewReplacer("/", "·")
					if ok, err := path.Match(flat.Replace(pattern), flat.Replace(key)); err != nil {
						t.Error(err)
					} else if ok {
						allowed, used[op], used[pattern] = true, true, true
					}
				}
			}
			if !allowed {
				t.Errorf("%s: the policy refuses %s of %q", r.Name, op, key)
			}
		}
	}
	for _, s := range r.Statements {
		for _, word := range slices.Concat(s.Actions, s.Keys) {
			if !used[word] {
				t.Errorf("%s: nobody needs %s; there were %v", r.Name, word, slices.Sorted(maps.Keys(used)))
			}
		}
	}
}

func role(t testing.TB, p pair.Pair, name string) pair.Role {
	t.Helper()
	for _, r := range p.Roles() {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("no role %s", name)
	return pair.Role{}
}

// awsEnv is what the AWS SDK wants.
func awsEnv(t testing.TB) {
	t.Helper()
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "us-east-2"} {
		if s, ok := t.(interface{ Setenv(string, string) }); ok {
			s.Setenv(k, v)
		}
	}
}

// job opens the place of the lease for one who does a job, and returns what was asked of it.
type job struct {
	t      testing.TB
	target string
	schema dynamodb.Plan
}

// open returns a configuration whose requests are noted, and how it is opened.
func (j job) open(pod string) (admiral.Config, func(context.Context, admiral.Config) (store.Store, error), *ledger) {
	l := &ledger{made: map[string]map[string]bool{}}
	cfg := admiral.Config{
		LeaseName: "prod", PodIdentifier: pod, WaitTime: time.Second, FailureThreshold: 3, TableName: j.schema.Table, Region: "us-east-2",
		Endpoint: l.front(j.t, j.target, j.schema.Key()),
	}
	if j.schema.Admiral {
		return cfg, standby.OpenTable, l
	}
	return cfg, func(ctx context.Context, cfg admiral.Config) (store.Store, error) {
		u, err := open.Parse("dynamodb://" + cfg.TableName + "?region=us-east-2&endpoint=" + url.QueryEscape(cfg.Endpoint))
		if err != nil {
			return nil, err
		}
		return u.Open(ctx, open.Options{})
	}, l
}

// run starts an instance, which ends with the test or when stop is called.
func (j job) run(pod string) (*admiral.State, *ledger, func()) {
	j.t.Helper()
	cfg, opened, l := j.open(pod)
	checker, err := admiral.New(func(ctx context.Context) (store.Store, error) { return opened(ctx, cfg) }, cfg, admiral.Options{})
	if err != nil {
		j.t.Fatal(err)
	}
	state := admiral.NewState(nil)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := checker.Run(ctx, state); err != nil {
			j.t.Error(err)
		}
	})
	stop := sync.OnceFunc(func() { cancel(); running.Wait() })
	j.t.Cleanup(stop)
	return state, l, stop
}

// reaches waits until the state is of that role.
func reaches(t testing.TB, s *admiral.State, active bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for st := s.Status(); st.ReadOnly == active || !st.Initialized; {
		var err error
		if st, err = s.Changed(ctx, st.Seq); err != nil {
			t.Fatalf("active: %v is not reached: %+v", active, st)
		}
	}
}

// The policies that `standby init` prints allow what each job does, and nothing that it doesn't: an instance from its first start over a
// hand-over, a hold, and its end; an operator with all that there is; one who looks; and one who claims a prefix.
func TestFinding_D5_LeastRights(t *testing.T) {
	for _, schema := range []dynamodb.Plan{{Table: admiral.DefaultTable, Admiral: true}, {Table: "leasehold"}} {
		t.Run(schema.Table, func(t *testing.T) {
			target := pairTable(t, schema)
			p := pair.Pair{Lease: "prod", Wait: time.Second, Threshold: 3, Table: schema}
			stalltest.Run(t, func(t testing.TB) {
				awsEnv(t)
				j := job{t, target, schema}
				east, ofEast, endEast := j.run("east")
				reaches(t, east, true)
				west, ofWest, endWest := j.run("west")
				reaches(t, west, false)
				cfg, opened, ofOperator := j.open("operator")
				st, err := opened(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				op := admiral.Operator{Store: st, Config: cfg, By: "test"}
				if _, err := op.Switchover(t.Context(), "west", 30*time.Second); err != nil {
					t.Fatal(err)
				}
				reaches(t, west, true)
				if _, err := op.RollCall(t.Context(), 3*time.Second); err != nil {
					t.Fatal(err)
				}
				held, err := op.Hold(t.Context(), "a test")
				if err == nil {
					err = op.Settle(t.Context(), held)
				}
				if err == nil {
					_, _, err = op.Resume(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				if i, ok := st.(driver.Inspector); ok {
					i.Inspect(t.Context())
				}
				for east.Status().ReadOnly && west.Status().ReadOnly {
					time.Sleep(10 * time.Millisecond)
				}
				endEast()
				endWest()
				if err := st.Close(); err != nil {
					t.Error(err)
				}
				both := &ledger{made: ofEast.made}
				for op, keys := range ofWest.made {
					if both.made[op] == nil {
						both.made[op] = map[string]bool{}
					}
					maps.Copy(both.made[op], keys)
				}
				both.covered(t, role(t, p, "instance"))
				// Deleting the row that doctor tried is more than anybody needs, and doctor says so.
				delete(ofOperator.made, "dynamodb:DeleteItem")
				ofOperator.covered(t, role(t, p, "operator"))

				cfg, opened, ofObserver := j.open("observer")
				if st, err = opened(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				if _, err := (admiral.Operator{Store: st, Config: cfg}).Record(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := st.Close(); err != nil {
					t.Error(err)
				}
				ofObserver.covered(t, role(t, p, "observer"))

				cfg, opened, ofPrefix := j.open("prefix")
				if st, err = opened(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				ofPrefix.mu.Lock()
				ofPrefix.made = map[string]map[string]bool{} // opening is the other policy's
				ofPrefix.mu.Unlock()
				_, err = admiral.ClaimPrefix(t.Context(), st, admiral.AutoPrefix, "prod", "east")
				if err := errors.Join(err, st.Close()); err != nil {
					t.Fatal(err)
				}
				ofPrefix.covered(t, role(t, p, "prefix"))
			})
		})
	}
}

// pairTable makes the table as `leasehold init dynamodb` does, and returns where it is.
func pairTable(t *testing.T, plan dynamodb.Plan) string {
	t.Helper()
	if plan.Admiral {
		return admiralTable(t)
	}
	target := admiralTable(t) // of the same server
	client := plainClient(target, closing(t))
	if _, err := plan.Create(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	return target
}

