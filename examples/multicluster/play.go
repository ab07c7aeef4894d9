package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencekubernetes"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

// play makes faults in a world, and sees what becomes of the objects.
type play struct {
	out       io.Writer
	modes     []string
	faults    int // in all
	leasehold string
	open      bool // the controllers have no gate

	w      *world
	began  clock.Instant
	mu     sync.Mutex        // of what follows
	given  map[string]string // host → address, as first seen
	result result
}

// fault is one kind of fault. do makes it, and undo ends it.
type fault struct {
	name     string
	only     string // the mode in which it can be made; "" for all
	do, undo func(p *play, pod, mode string) error
}

func each(f func(n *servers.Network)) func(p *play, pod, mode string) error {
	return func(p *play, pod, _ string) error {
		for _, n := range p.w.nets[pod] {
			f(n)
		}
		return nil
	}
}

var heal = each((*servers.Network).Heal)

var allFaults = []fault{
	{"switchover", "", func(p *play, pod, _ string) error {
		other := pods[0]
		if other == pod {
			other = pods[1]
		}
		ctx, cancel := clock.WithTimeout(context.Background(), clock.System(), patience)
		defer cancel()
		_, err := p.w.op.Switchover(ctx, other, patience)
		return err
	}, func(*play, string, string) error { return nil }},
	{"kill", "", func(p *play, pod, _ string) error { p.w.kill(pod, syscall.SIGKILL); return nil },
		func(p *play, pod, mode string) error { return p.w.start(pod, mode) }},
	{"partition", "", each(func(n *servers.Network) { n.DropRequests(true) }), heal},
	{"store unreachable", "", func(p *play, pod, _ string) error { p.w.nets[pod][0].Refuse(); return nil }, heal},
	{"replies lost", "", each(func(n *servers.Network) { n.SwallowReplies(true) }), heal},
	{"sent before, comes late", "", each((*servers.Network).Cut), heal},
	{"stopped, wakes up late", modeLibrary, func(p *play, pod, _ string) error {
		return p.w.procs[pod].cmd.Process.Signal(syscall.SIGSTOP)
	}, func(p *play, pod, _ string) error { return p.w.procs[pod].cmd.Process.Signal(syscall.SIGCONT) }},
}

const patience = time.Minute

func (p *play) run(ctx context.Context) (*result, error) {
	dir, err := os.MkdirTemp("", "multicluster")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p.began, p.given = clock.System().Now(), map[string]string{}
	if err := p.build(ctx, dir); err != nil {
		return nil, err
	}
	p.say("", "two API servers and etcd start")
	if p.w, err = newWorld(ctx, dir, p.leasehold); err != nil {
		return nil, err
	}
	defer p.w.end()
	p.w.open = p.open
	changing, stop := context.WithCancel(ctx)
	var own sync.WaitGroup
	own.Go(func() { p.change(changing) })
	own.Go(func() { p.watch(changing) })
	for i, mode := range p.modes {
		n := p.faults / len(p.modes)
		if i < p.faults%len(p.modes) {
			n++
		}
		if err = p.way(ctx, mode, n); err != nil {
			err = fmt.Errorf("%s: %w\n%s", mode, err, p.logs())
			break
		}
	}
	stop()
	own.Wait()
	if err != nil {
		return nil, err
	}
	return &p.result, p.judge()
}

// logs is the end of what the instances said.
func (p *play) logs() string {
	var all string
	for _, pod := range pods {
		b, _ := os.ReadFile(filepath.Join(p.w.dir, pod+".log"))
		all += pod + ":\n" + string(b[max(0, len(b)-2000):])
	}
	return all
}

// build builds leasehold, if it is needed and not there.
func (p *play) build(ctx context.Context, dir string) error {
	if p.leasehold != "" || strings.Join(p.modes, "") == modeLibrary {
		return nil
	}
	p.say("", "leasehold is built")
	p.leasehold = filepath.Join(dir, "leasehold")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", p.leasehold, "github.com/leasehold/leasehold/cmd/leasehold").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build leasehold: %w\n%s", err, out)
	}
	return nil
}

// way runs a pair in one mode, and makes n faults.
func (p *play) way(ctx context.Context, mode string, n int) error {
	p.say("", "a pair starts: "+mode)
	for _, pod := range pods {
		if err := p.w.start(pod, mode); err != nil {
			return err
		}
	}
	var kinds []fault
	for _, f := range allFaults {
		if f.only == "" || f.only == mode {
			kinds = append(kinds, f)
		}
	}
	for i := range n {
		if err := p.fault(ctx, kinds[i%len(kinds)], mode); err != nil {
			return err
		}
	}
	for _, pod := range pods {
		p.w.kill(pod, syscall.SIGTERM)
	}
	return nil
}

// fault makes one fault, waits until the other side has every object, and undoes it.
func (p *play) fault(ctx context.Context, f fault, mode string) error {
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), 3*patience)
	defer cancel()
	pod, token, err := p.settled(ctx, 0)
	if err == nil {
		err = p.bothAnswer(ctx)
	}
	if err != nil {
		return fmt.Errorf("before %s: %w", f.name, err)
	}
	p.say("", fmt.Sprintf("%s: %s", f.name, pod))
	made := moment{f.name, mode, token, clock.System().Wall()}
	if err := f.do(p, pod, mode); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	successor, _, err := p.settled(ctx, token)
	if err == nil {
		// For what the former one may still write.
		err = clock.Sleep(ctx, clock.System(), waitTime/2)
	}
	if err := errors.Join(err, f.undo(p, pod, mode)); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	p.say("", fmt.Sprintf("%s has every object; %s is back", successor, pod))
	p.mu.Lock()
	p.result.faults = append(p.result.faults, made)
	p.mu.Unlock()
	return p.checkAddresses(ctx)
}

// bothAnswer waits until both instances run, and neither is cut off from the lease.
func (p *play) bothAnswer(ctx context.Context) error {
	for {
		all, err := p.w.op.RollCall(ctx, 300*milli)
		if err == nil && len(all) == len(pods) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d instances answer: %w", len(all), errors.Join(err, context.Cause(ctx)))
		}
	}
}

// settled waits until a term after the given one holds, and every service that there is now has its
// entry in both clusters under that term.
func (p *play) settled(ctx context.Context, after fence.Token) (pod string, token fence.Token, err error) {
	wanted, err := p.names(ctx)
	if err != nil {
		return "", 0, err
	}
	for {
		rec, err := p.w.op.Record(ctx)
		why := ""
		if err == nil && rec.Owner != "" && rec.Token > after && rec.Intervention == "" {
			pod, _ = admiral.HolderOf(rec)
			why, err = p.missing(ctx, wanted, rec.Token)
			if err == nil && why == "" {
				return pod, rec.Token, nil
			}
		}
		if clock.Sleep(ctx, clock.System(), 50*milli) != nil {
			return "", 0, fmt.Errorf("%s is active (term %d), and %s: %w", rec.Owner, rec.Token, why, errors.Join(err, context.Cause(ctx)))
		}
	}
}

func (p *play) names(ctx context.Context) (all []string, err error) {
	for _, c := range p.w.clusters {
		list, err := c.client.CoreV1().ConfigMaps(services).List(ctx, metav1.ListOptions{LabelSelector: "service=true"})
		if err != nil {
			return nil, err
		}
		for _, s := range list.Items {
			all = append(all, s.Name)
		}
	}
	return all, nil
}

// missing says which entry does not bear the term yet.
func (p *play) missing(ctx context.Context, wanted []string, token fence.Token) (string, error) {
	for _, c := range p.w.clusters {
		list, err := c.client.CoreV1().ConfigMaps(entries).List(ctx, metav1.ListOptions{LabelSelector: "entry=true"})
		if err != nil {
			return "", err
		}
		marks := map[string]string{}
		for _, e := range list.Items {
			marks[e.Name] = e.Annotations[fencekubernetes.Annotation]
		}
		for _, name := range wanted {
			if !strings.Contains(marks[name], `"token":`+token.String()+",") {
				return fmt.Sprintf("%s in %s has the mark %s", name, c.name, marks[name]), nil
			}
		}
	}
	return "", nil
}

// mostServices bounds what is copied, so that a pass stays short.
const mostServices = 12

// change deploys services, and changes them, as teams do all the time.
func (p *play) change(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		c := p.w.clusters[rand.IntN(len(p.w.clusters))]
		maps := c.client.CoreV1().ConfigMaps(services)
		name := fmt.Sprintf("%s-%d", c.name, rand.IntN(min(1+n/10, mostServices/2)))
		data := map[string]string{"endpoints": fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)}
		s := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"service": "true"}}, Data: data}
		if _, err := maps.Update(ctx, s, metav1.UpdateOptions{}); err != nil {
			// One that fails is tried again at the next change.
			_, _ = maps.Create(ctx, s, metav1.CreateOptions{})
		}
		_ = clock.Sleep(ctx, clock.System(), 100*milli)
	}
}

// watch says who holds the lease, whenever that changes.
func (p *play) watch(ctx context.Context) {
	last := fence.Token(0)
	for ctx.Err() == nil {
		if rec, err := p.w.op.Record(ctx); err == nil && rec.Token > last && rec.Owner != "" {
			last = rec.Token
			pod, _ := admiral.HolderOf(rec)
			p.say(pod, fmt.Sprintf("holds the lease (term %d)", rec.Token))
		}
		_ = clock.Sleep(ctx, clock.System(), 20*milli)
	}
}

func (p *play) say(pod, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := clock.System().Now().Sub(p.began).Seconds()
	if pod == "" {
		fmt.Fprintf(p.out, "%7.2f s  — %s\n", at, text)
		return
	}
	fmt.Fprintf(p.out, "%7.2f s      %-5s %s\n", at, pod, text)
}
