//go:build !lite

package standby_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

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

// add adds what was asked of another lease's names, as if it were this one's.
func (l *ledger) add(o *ledger, lease string) {
	for op, keys := range o.made {
		if l.made[op] == nil {
			l.made[op] = map[string]bool{}
		}
		for key := range keys {
			l.made[op][strings.ReplaceAll(key, "alone-"+lease, lease)] = true
		}
	}
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

// job opens the place of the lease for one who does a job, and returns what was asked of it.
type job struct {
	t      testing.TB
	target string
	schema dynamodb.Plan
	lease  string
}

// open returns a configuration whose requests are noted, and how it is opened.
func (j job) open(pod string) (admiral.Config, func(context.Context, admiral.Config) (store.Store, error), *ledger) {
	l := &ledger{made: map[string]map[string]bool{}}
	cfg := admiral.Config{
		LeaseName: j.lease, PodIdentifier: pod, WaitTime: time.Second, FailureThreshold: 3, TableName: j.schema.Table, Region: "us-east-2",
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

// alone is what an operator asks of a lease that no instance has ever had.
func (j job) alone() *ledger {
	j.lease = "alone-" + j.lease
	cfg, opened, l := j.open("operator")
	st, err := opened(j.t.Context(), cfg)
	if err == nil {
		_, err = admiral.Operator{Store: st, Config: cfg}.RollCall(j.t.Context(), 10*time.Millisecond)
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		j.t.Fatal(err)
	}
	return l
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
			stalltest.Run(t, func(t testing.TB) {
				// Of its own, since the first use of a name is another than the next.
				p := pair.Pair{Lease: "prod-" + rand.Text(), Wait: time.Second, Threshold: 3, Table: schema}
				j := job{t, target, schema, p.Lease}
				cfg, opened, ofObserver := j.open("observer")
				observe := func() {
					st, err := opened(t.Context(), cfg)
					if err == nil {
						_, err = admiral.Operator{Store: st, Config: cfg}.Record(t.Context())
						err = errors.Join(err, st.Close())
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				observe()
				east, ofEast, endEast := j.run("east")
				reaches(t, east, true)
				west, ofWest, endWest := j.run("west")
				reaches(t, west, false)
				operated, opener, ofOperator := j.open("operator")
				st, err := opener(t.Context(), operated)
				if err != nil {
					t.Fatal(err)
				}
				op := admiral.Operator{Store: st, Config: operated, By: "test"}
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
				for east.Status().ReadOnly && west.Status().ReadOnly {
					time.Sleep(10 * time.Millisecond)
				}
				endEast()
				endWest()
				if err := st.Close(); err != nil {
					t.Error(err)
				}
				ofEast.add(ofWest, p.Lease)
				ofEast.covered(t, role(t, p, "instance"))
				ofOperator.add(j.alone(), p.Lease)
				ofOperator.covered(t, role(t, p, "operator"))
				observe()
				ofObserver.covered(t, role(t, p, "observer"))

				cfg, opened, ofDoctor := j.open("doctor")
				if st, err = opened(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				i, ok := st.(driver.Inspector)
				if !ok {
					t.Fatalf("%T can't be examined", st)
				}
				for _, f := range i.Inspect(t.Context()) {
					if f.Status == driver.StatusFail {
						t.Errorf("%+v", f)
					}
				}
				if err := st.Close(); err != nil {
					t.Error(err)
				}
				if schema.Admiral { // it deletes its row where it may, and doesn't need to
					delete(ofDoctor.made, "dynamodb:DeleteItem")
				}
				ofDoctor.covered(t, role(t, p, "doctor"))

				cfg, opened, ofPrefix := j.open("prefix")
				if st, err = opened(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				ofPrefix.mu.Lock()
				ofPrefix.made = map[string]map[string]bool{} // opening is the other policy's
				ofPrefix.mu.Unlock()
				prefix, err := admiral.ClaimPrefix(t.Context(), st, admiral.AutoPrefix, p.Lease, "east")
				if err == nil {
					_, err = admiral.ClaimPrefix(t.Context(), st, prefix, p.Lease, "west")
				}
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
	target := admiralTable(t)
	if plan.Admiral {
		return target
	}
	_, err := plan.Create(t.Context(), awsdynamodb.New(awsdynamodb.Options{
		Region: "us-east-2", BaseEndpoint: &target, HTTPClient: closing(t),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// Each metric that an alert, an alarm or the dashboard names is exported by an instance, and each that is exported is looked at by the
// dashboard. A request that the table refuses for its capacity is counted.
func TestExportedMetrics(t *testing.T) {
	target := admiralTable(t)
	stalltest.Run(t, func(t testing.TB) {
		refused := make(chan struct{}, 1)
		refused <- struct{}{}
		to, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		behind := httputil.NewSingleHostReverseProxy(to)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") {
				select {
				case <-refused:
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`)
					return
				default:
				}
			}
			behind.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		state := admiral.NewState(nil)
		metrics := standby.NewMetrics(state)
		cfg := admiral.Config{
			LeaseName: "prod", PodIdentifier: "east", WaitTime: time.Second, FailureThreshold: 3, TableName: admiral.DefaultTable,
			Region: "us-east-2", Endpoint: front.URL,
		}
		checker, err := admiral.Checkers().New(admiral.DynamoDB, admiral.Params{Config: cfg, Table: standby.TableOpener(metrics.Throttled)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() {
			if err := checker.Run(ctx, state); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() { cancel(); running.Wait() })
		reaches(t, state, true)
		server, err := standby.Listen(t.Context(), "127.0.0.1:0", state, metrics)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		resp, err := http.Get("http://" + server.Addr() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), `leasehold_standby_throttled_total{lease="prod",pod="east"} 1`) {
			t.Errorf("the refused request isn't counted:\n%s", text)
		}
		name := regexp.MustCompile(`leasehold_standby_[a-z_]+`)
		exported := map[string]bool{}
		for _, line := range regexp.MustCompile(`(?m)^leasehold_standby_[a-z_]+`).FindAllString(string(text), -1) {
			exported[line] = true
		}
		p := pair.Pair{
			Lease: "prod", Wait: 15 * time.Second, Threshold: 3, Region: "us-east-2", Table: dynamodb.Plan{Table: admiral.DefaultTable, Admiral: true},
			Pods: []pair.Pod{{Name: "east", Region: "us-east-2"}, {Name: "west", Region: "us-west-2"}},
		}
		named := map[string]map[string]bool{}
		for _, kind := range []string{pair.Prometheus, pair.Grafana, dynamodb.CloudFormation, dynamodb.Terraform} {
			text, err := p.Text(kind, "")
			if err != nil {
				t.Fatal(err)
			}
			named[kind] = map[string]bool{}
			for _, n := range name.FindAllString(text, -1) {
				named[kind][n] = true
				if !exported[n] {
					t.Errorf("%s names %s, which no instance exports", kind, n)
				}
			}
		}
		for n := range exported {
			if !named[pair.Grafana][n] {
				t.Errorf("the dashboard lacks %s", n)
			}
		}
	})
}
