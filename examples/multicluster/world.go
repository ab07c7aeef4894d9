package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

// pods are the two instances, each in a Region of its own.
var pods = []string{"east", "west"}

// The times of the lease: waitTimeInSeconds × failureThreshold.
const (
	waitTime  = time.Second
	threshold = 3
)

// world is the servers, what lies between them and the instances, and the instances.
type world struct {
	dir, exe, leasehold string
	open                bool // the controllers have no gate
	clusters            []*cluster
	lease               *servers.Server
	// By pod: to the lease's store, then to each cluster.
	nets  map[string][]*servers.Network
	op    admiral.Operator
	procs map[string]*instance
	ended []func()
}

type cluster struct {
	name   string
	server *servers.Server
	audit  string
	client *kubernetes.Clientset // not through any network that is cut
}

type instance struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// newWorld starts the servers, one after the other on a small machine.
func newWorld(ctx context.Context, dir, leasehold string) (w *world, err error) {
	w = &world{dir: dir, leasehold: leasehold, nets: map[string][]*servers.Network{}, procs: map[string]*instance{}}
	defer func() {
		if err != nil {
			w.end()
		}
	}()
	if w.exe, err = os.Executable(); err != nil {
		return w, err
	}
	if w.lease, err = servers.Launch(ctx, "etcd", filepath.Join(dir, "lease")); err != nil {
		return w, err
	}
	w.ended = append(w.ended, w.lease.Stop)
	rules := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(rules, []byte(policy), 0o600); err != nil {
		return w, err
	}
	for _, name := range []string{"one", "two"} {
		c := &cluster{name: name, audit: filepath.Join(dir, "audit-"+name+".log")}
		c.server, err = servers.Launch(ctx, "kubernetes", filepath.Join(dir, name),
			servers.Set("audit-policy-file", rules), servers.Set("audit-log-path", c.audit))
		if err != nil {
			return w, err
		}
		w.ended = append(w.ended, c.server.Stop)
		w.clusters = append(w.clusters, c)
		if err := c.prepare(ctx); err != nil {
			return w, err
		}
	}
	st, err := openEtcd(w.lease.Addr)
	if err != nil {
		return w, err
	}
	w.ended = append(w.ended, func() { _ = st.Close() })
	w.op = admiral.Operator{Store: st, Config: admiral.Config{LeaseName: leaseName, WaitTime: waitTime, FailureThreshold: threshold}, By: "the example"}
	for _, pod := range pods {
		for _, target := range []string{w.lease.Addr, w.clusters[0].server.Addr, w.clusters[1].server.Addr} {
			n, err := servers.Through(target, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
			if err != nil {
				return w, err
			}
			w.nets[pod] = append(w.nets[pod], n)
			w.ended = append(w.ended, n.Close)
		}
	}
	return w, nil
}

// prepare makes the namespaces, and the addresses that are still empty.
func (c *cluster) prepare(ctx context.Context) error {
	config, err := restConfig(clusterSettings{Kubeconfig: c.server.Extra["kubeconfig"]})
	if err != nil {
		return err
	}
	if c.client, _, err = clientsOf(config); err != nil {
		return err
	}
	for _, name := range []string{services, entries} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err = c.client.CoreV1().ConfigMaps(entries).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: addresses}}, metav1.CreateOptions{})
	return err
}

// start starts an instance.
func (w *world) start(pod, mode string) error {
	lease, role := filepath.Join(w.dir, pod+".yaml"), filepath.Join(w.dir, "role-"+pod)
	text := fmt.Sprintf("leaseName: %s\npodIdentifier: %s\nwaitTimeInSeconds: %d\nfailureThreshold: %d\npodRegion: region-of-%s\nstore: etcd://%s\n",
		leaseName, pod, int(waitTime/time.Second), threshold, pod, w.nets[pod][0].Addr)
	s := settings{Pod: pod, Mode: mode, Lease: lease, RoleFile: role, Open: w.open}
	for i, c := range w.clusters {
		s.Clusters = append(s.Clusters, clusterSettings{c.name, c.server.Extra["kubeconfig"], w.nets[pod][i+1].Addr})
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file, script := filepath.Join(w.dir, pod+".json"), filepath.Join(w.dir, "hook")
	err = errors.Join(os.WriteFile(lease, []byte(text), 0o600), os.WriteFile(file, b, 0o600),
		os.WriteFile(script, []byte("#!/bin/sh\nexec '"+w.exe+"' -hook \"$1\"\n"), 0o700), //nolint:gosec // it is to be executed
		gone(role+".acts"))
	if err != nil {
		return err
	}
	own := []string{w.exe, "-controller", file}
	args := own
	switch standby := []string{w.leasehold, "standby", "--config", lease, "--listen", "off"}; mode {
	case modeProcess:
		args = append(append(standby, "--"), own...)
	case modeNotify:
		args = append(append(standby, "--mode", modeNotify, "--notify-file", role, "--notify-command", script, "--early", noticeEarly.String(), "--"), own...)
	}
	log, err := os.OpenFile(filepath.Join(w.dir, pod+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	// The child has its own.
	defer func() { _ = log.Close() }()
	i := &instance{cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})} //nolint:noctx // stop ends it
	i.cmd.Stdout, i.cmd.Stderr = log, log
	if err := i.cmd.Start(); err != nil {
		return err
	}
	go func() { // until the process ends, for which stop waits
		defer close(i.ended)
		_ = i.cmd.Wait()
	}()
	w.procs[pod] = i
	return nil
}

func gone(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// kill ends an instance with SIGKILL, or, with SIGTERM, lets it end its term.
func (w *world) kill(pod string, sig syscall.Signal) {
	i := w.procs[pod]
	if i == nil {
		return
	}
	delete(w.procs, pod)
	_ = i.cmd.Process.Signal(sig)
	stop := clock.System().AfterFunc(20*time.Second, func() { _ = i.cmd.Process.Kill() })
	<-i.ended
	stop()
}

// end stops everything.
func (w *world) end() {
	var own sync.WaitGroup
	for _, pod := range pods {
		if i := w.procs[pod]; i != nil {
			own.Go(func() { _ = i.cmd.Process.Signal(syscall.SIGCONT); _ = i.cmd.Process.Kill(); <-i.ended })
		}
	}
	own.Wait()
	for i := len(w.ended) - 1; i >= 0; i-- {
		w.ended[i]()
	}
}
