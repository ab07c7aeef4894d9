package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/compat/admiral/configmap"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencekubernetes"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcd"
)

const milli = time.Millisecond

// The objects. Services and their entries are ConfigMaps: what is shown doesn't depend on the kind,
// and a bare API server has that one.
const (
	services  = "services" // namespace of what teams deploy
	entries   = "entries"  // namespace of what the controller copies into every cluster
	addresses = "se-address-configmap"
	leaseName = "prod"
	prefix    = "240.0"
)

// settings are what one controller needs, from a file that the play writes.
type settings struct {
	Pod      string
	Mode     string            // library, process or notify
	Lease    string            // path of the configuration of the lease; for library
	RoleFile string            // for notify
	Clusters []clusterSettings // the first one keeps the addresses
	Open     bool              // without a gate: for the proof of the proof
}

type clusterSettings struct {
	Name, Kubeconfig, Host string
}

// controller copies every service of every cluster into every cluster, as a service entry with an
// address of its own.
type controller struct {
	settings
	gate     gate
	clusters []*kubernetes.Clientset
	alloc    *admiral.Allocator
}

// control runs a controller until ctx is done.
func control(ctx context.Context, path string) error {
	c := &controller{}
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &c.settings)
	}
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	switch c.Mode {
	case modeLibrary:
		state := admiral.NewState(nil)
		c.gate = library{state}
		checker, err := newChecker(c.Lease)
		if err != nil {
			return err
		}
		go func() { ended <- checker.Run(ctx, state) }()
	case modeProcess:
		c.gate, err = newProcess()
	case modeNotify:
		c.gate = newNotify(c.RoleFile)
	default:
		err = fmt.Errorf("mode %q: want library, process or notify", c.Mode)
	}
	if err == nil && c.Open {
		c.gate = open{c.gate, new(fence.Token)}
	}
	if err == nil {
		err = c.connect()
	}
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := c.pass(ctx); err != nil && !errors.Is(err, errPassive) && !errors.Is(err, admiral.ErrReadOnly) {
			fmt.Fprintf(os.Stderr, "%s: %v\n", c.Pod, err)
		}
		_ = clock.Sleep(ctx, clock.System(), 50*milli)
	}
	if c.Mode == modeLibrary {
		return <-ended
	}
	return nil
}

// newChecker is Leasehold's state checker on etcd.
func newChecker(path string) (admiral.StateChecker, error) {
	cfg, err := admiral.LoadConfig(path)
	if err != nil {
		return nil, err
	}
	return admiral.Checkers().New(admiral.Leasehold, admiral.Params{Config: cfg, Store: func(_ context.Context, cfg admiral.Config) (store.Store, error) {
		return openEtcd(strings.TrimPrefix(cfg.Store, "etcd://"))
	}})
}

// etcdStore closes its client with it.
type etcdStore struct {
	*etcd.Store
	client *clientv3.Client
}

func openEtcd(addr string) (store.Store, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: time.Second})
	if err != nil {
		return nil, err
	}
	st, err := etcd.New(client, etcd.Options{})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return etcdStore{st, client}, nil
}

// Close implements [store.Store].
func (e etcdStore) Close() error { return errors.Join(e.Store.Close(), e.client.Close()) }

// connect makes the clients, whose every request goes through the gate and bears the token of its
// term.
func (c *controller) connect() error {
	for i, cl := range c.Clusters {
		config, err := restConfig(cl)
		if err != nil {
			return err
		}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return signed{c.gate.through(next), c.Pod} })
		clients, httpClient, err := clientsOf(config)
		if err != nil {
			return err
		}
		c.clusters = append(c.clusters, clients)
		if i > 0 {
			continue
		}
		st, err := configmap.New(httpClient, config.Host, entries, addresses)
		if err == nil {
			c.alloc, err = admiral.NewAllocator(st, prefix)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write sends one write under the term of the moment.
func (c *controller) write(ctx context.Context, f func(ctx context.Context, seq fence.Sequencer) error) error {
	ctx, token, done, err := c.gate.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	return f(withToken(ctx, token), fence.Sequencer{Name: leaseName, Holder: c.Pod, Token: token})
}

// pass makes every entry what it should be. In a new term it writes its mark on each of them first,
// and on the addresses: what an earlier term sent, and comes late, meets another version.
func (c *controller) pass(ctx context.Context) error {
	if c.Mode == modeNotify {
		_, _, done, err := c.gate.begin(ctx)
		if err != nil {
			return err // it notes that this instance stands by
		}
		done()
	}
	if err := c.adopt(ctx, c.clusters[0], addresses, nil); err != nil {
		return err
	}
	wanted := map[string]map[string]string{}
	for i, cluster := range c.clusters {
		all, err := cluster.CoreV1().ConfigMaps(services).List(ctx, metav1.ListOptions{LabelSelector: "service=true"})
		if err != nil {
			return err
		}
		for _, s := range all.Items {
			wanted[s.Name] = map[string]string{"host": s.Name + ".global", "endpoints": s.Data["endpoints"], "from": c.Clusters[i].Name}
		}
	}
	for _, cluster := range c.clusters {
		there, err := cluster.CoreV1().ConfigMaps(entries).List(ctx, metav1.ListOptions{LabelSelector: "entry=true"})
		if err != nil {
			return err
		}
		known := map[string]corev1.ConfigMap{}
		for _, e := range there.Items {
			known[e.Name] = e
		}
		for name, data := range wanted {
			if e, ok := known[name]; ok {
				data["address"] = e.Data["address"]
				if err := c.adopt(ctx, cluster, name, data); err != nil {
					return err
				}
			}
		}
		for name, data := range wanted {
			if _, ok := known[name]; !ok {
				if err := c.create(ctx, cluster, name, data); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// create makes an entry, with an address that nothing else has.
func (c *controller) create(ctx context.Context, cluster *kubernetes.Clientset, name string, data map[string]string) error {
	return c.write(ctx, func(ctx context.Context, seq fence.Sequencer) error {
		var err error
		if data["address"], err = c.alloc.Address(ctx, data["host"]); err != nil {
			return err
		}
		mark, err := json.Marshal(fence.Mark{Token: seq.Token, Holder: seq.Holder})
		if err != nil {
			return err
		}
		_, err = cluster.CoreV1().ConfigMaps(entries).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"entry": "true"}, Annotations: map[string]string{fencekubernetes.Annotation: string(mark)},
			}, Data: data,
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil // the next pass reads it
		}
		return err
	})
}

// adopt writes data, and the mark of the term, unless both are there. nil leaves the data alone.
func (c *controller) adopt(ctx context.Context, cluster *kubernetes.Clientset, name string, data map[string]string) error {
	maps := cluster.CoreV1().ConfigMaps(entries)
	e, err := maps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return c.write(ctx, func(ctx context.Context, seq fence.Sequencer) error {
		same := strings.Contains(e.Annotations[fencekubernetes.Annotation], `"token":`+seq.Token.String()+",")
		for k, v := range data {
			same = same && e.Data[k] == v
		}
		if same {
			return nil
		}
		set := func(e *corev1.ConfigMap) error {
			for k, v := range data {
				if e.Data == nil {
					e.Data = map[string]string{}
				}
				e.Data[k] = v
			}
			return nil
		}
		if c.Open {
			return overwrite(ctx, maps, seq, e, set)
		}
		_, err := fencekubernetes.Update(ctx, maps, seq, name, set)
		return err
	})
}

// overwrite is a write that asks nobody, and keeps to no mark.
func overwrite(ctx context.Context, maps typed.ConfigMapInterface, seq fence.Sequencer, e *corev1.ConfigMap, set func(*corev1.ConfigMap) error) error {
	e.ResourceVersion = ""
	mark, err := json.Marshal(fence.Mark{Token: seq.Token, Holder: seq.Holder})
	if err == nil {
		err = set(e)
	}
	if err != nil {
		return err
	}
	e.Annotations = map[string]string{fencekubernetes.Annotation: string(mark)}
	_, err = maps.Update(ctx, e, metav1.UpdateOptions{})
	return err
}
