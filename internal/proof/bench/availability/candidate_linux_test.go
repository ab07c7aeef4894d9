package availability

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/consul"
	"github.com/leasehold/leasehold/store/etcd"
	"github.com/leasehold/leasehold/store/kubernetes"
)

// helper is the environment variable that makes a candidate of this program, and says which one.
const helper = "LEASEHOLD_AVAILABILITY_CANDIDATE"

func TestMain(m *testing.M) {
	text := os.Getenv(helper)
	if text == "" {
		goleak.VerifyTestMain(servers.Main(m))
		return
	}
	if err := stand(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ttl is that of all contestants: after it, others may take the name of a leader that is silent.
const ttl = 15 * time.Second

// candidacy is what a candidate needs to know.
type candidacy struct {
	Kind       string // of candidates
	ID         string // which candidate of its cell it is
	Name       string // what it stands for
	Addr       string // host and port of the network before the server
	Kubeconfig string // of an administrator, if the server is Kubernetes
}

// kinds are what a candidate can be. Each function stands until ctx is done, or until that contestant's own way of standing has ended.
var kinds = map[string]func(ctx context.Context, c candidacy) error{
	"leasehold-etcd": leasehold, "leasehold-kubernetes": leasehold, "leasehold-consul": leasehold,
	"mutex": mutex, "client-go": clientGo, "child": child,
}

func stand(text string) error {
	var c candidacy
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("%s=%q: %w", helper, text, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return kinds[c.Kind](ctx, c)
}

// lead says that the candidate leads until ctx is done. The lines of all candidates of a cell go into one pipe, so that they are read in
// the order in which they were written: a leader's end is there before it lets go of the name.
func (c candidacy) lead(ctx context.Context) {
	fmt.Printf("%s %s\n", begins, c.ID)
	<-ctx.Done()
	fmt.Printf("%s %s\n", ends, c.ID)
}

// log is for people who ask why somebody else leads.
func (c candidacy) log(what ...any) {
	fmt.Fprintln(os.Stderr, time.Now().Format("04:05.000"), c.ID+":", strings.TrimSpace(fmt.Sprintln(what...)))
}

func leasehold(ctx context.Context, c candidacy) error {
	st, err := c.open()
	if err != nil {
		return err
	}
	m, err := lease.NewManager(st, lease.Options{TTL: ttl, OnEvent: func(e lease.Event) { c.log(e.State, e.Name, e.Err) }})
	if err != nil {
		return err
	}
	err = election.Run(ctx, m, c.Name, election.Callbacks{
		OnStartedLeading: func(ctx context.Context, _ election.Term) {
			c.lead(ctx)
			c.log("led until", context.Cause(ctx))
		},
		OnError: func(err error) { c.log(err) },
	}, election.Options{})
	_ = m.Close()
	_ = st.Close()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// open opens the store by the client that the command makes.
func (c candidacy) open() (store.Store, error) {
	switch c.Kind {
	case "leasehold-etcd":
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{c.Addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
			DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		})
		if err != nil {
			return nil, err
		}
		return etcd.New(client, etcd.Options{Prefix: "availability/"})
	case "leasehold-consul":
		transport := &http.Transport{
			DialContext:  (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			MaxIdleConns: 2 * consul.DefaultMaxQueries, MaxIdleConnsPerHost: 2 * consul.DefaultMaxQueries, IdleConnTimeout: time.Minute,
		}
		client, err := api.NewClient(&api.Config{Address: c.Addr, HttpClient: &http.Client{Transport: transport}})
		if err != nil {
			return nil, err
		}
		return consul.New(client, consul.Options{Prefix: "availability/"})
	default:
		config, err := c.cluster()
		if err != nil {
			return nil, err
		}
		client, err := kubernetes.Client(config)
		if err != nil {
			return nil, err
		}
		return kubernetes.New(client, kubernetes.Options{Namespace: namespace})
	}
}

const namespace = "default"

// cluster is how to reach the API server through the network.
func (c candidacy) cluster() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Host = "https://" + c.Addr
	return config, nil
}

// mutex holds etcd's Mutex, and again by a new session when the one before has ended.
func mutex(ctx context.Context, c candidacy) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Addr}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := c.hold(ctx, client); err != nil && ctx.Err() == nil {
			c.log(err)
			time.Sleep(100 * time.Millisecond) // between attempts
		}
	}
	_ = client.Close()
	return nil
}

// hold holds the Mutex by one session, until that or ctx ends.
func (c candidacy) hold(ctx context.Context, client *clientv3.Client) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(ttl/time.Second)))
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // it deletes the key with the session's lease
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(session.Ctx(), cancel)()
	if err := concurrency.NewMutex(session, "availability-mutex/"+c.Name).Lock(both); err != nil {
		return err
	}
	c.lead(both)
	return nil
}

// clientGo runs client-go's elector until it has ended: when it has lost its lease, too.
func clientGo(ctx context.Context, c candidacy) error {
	config, err := c.cluster()
	if err != nil {
		return err
	}
	const renewDeadline = 10 * time.Second
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, c.Name,
		resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s-%d", c.ID, os.Getpid())}, config, renewDeadline)
	if err != nil {
		return err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: ttl, RenewDeadline: renewDeadline, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: c.lead,
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}

// child is what `consul lock` starts while it has the lock. It dies with its parent, as an orphan that nobody wants.
func child(ctx context.Context, c candidacy) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	c.lead(ctx)
	return nil
}
