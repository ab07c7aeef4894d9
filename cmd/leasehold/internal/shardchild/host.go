//go:build unix

package shardchild

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
)

// Arg is the only argument of a process that is a host.
const Arg = "__shard"

// Name is what a host is called in lists of processes.
const Name = "lease-shard"

// The file descriptors of a host beside its standard ones: the life, and behind it the store's
// proof.
const (
	lifeFD  = 3
	firstFD = 4
)

// order is the first line that a host reads.
type order struct {
	Path    string
	Args    []string
	Env     []string
	Contain supervise.Contain
	Timing  supervise.Timing
	Until   clock.Instant
	Proofs  int // open files behind the life
}

// What a host reads after that, and what it writes.
const (
	wordUntil = "until"
	wordDrain = "drain"
	wordEnd   = "end"

	saysStarted = "started"
	saysFailed  = "failed"
	saysNotice  = "notice"
	saysGuards  = "guards"
	saysEnded   = "ended"
)

// host is the process that supervises one command. It is the lease of that, as the worker tells it.
type host struct {
	life   *os.File
	until  atomic.Int64
	ctx    context.Context
	lost   context.CancelFunc
	asked  chan struct{}
	timing supervise.Timing
}

// hostMain is the life of a host. It is not ended by what ends the worker: the worker drains its
// commands then.
func hostMain() int {
	// Caught, and not ignored: what is ignored here would be by the command.
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE} {
		if !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	supervise.Catch()
	if runtime.GOOS == "linux" {
		_ = os.WriteFile("/proc/self/comm", []byte(Name), 0) // it is for people
	}
	unix.CloseOnExec(lifeFD)
	h := &host{life: os.NewFile(lifeFD, "life"), asked: make(chan struct{})}
	h.ctx, h.lost = context.WithCancel(context.Background())
	in := bufio.NewReader(os.Stdin)
	var o order
	first, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(first, &o)
	}
	if err != nil {
		return 1 // the worker has gone before it said what to do
	}
	proof := []*os.File{h.life}
	for i := range o.Proofs {
		unix.CloseOnExec(firstFD + i)
		proof = append(proof, os.NewFile(uintptr(firstFD+i), "proof"))
	}
	h.timing = o.Timing
	h.until.Store(int64(o.Until))
	return h.run(o, in, proof)
}

func (h *host) run(o order, in *bufio.Reader, proof []*os.File) int {
	clk := clock.System()
	p, err := supervise.Start(supervise.Command{
		Path: o.Path, Args: o.Args, Env: o.Env, Clock: clk, Detached: true, Contain: o.Contain, Proof: proof,
		Guards: func(err error) { h.say(saysGuards, "%q", err) },
	})
	if err != nil {
		h.say(saysFailed, "%d %q", errno(err), err)
		return 1
	}
	h.say(saysStarted, "")
	go h.listen(in) // ends with the pipe, or the process
	lost := supervise.WatchUntil(h.asked, h, p, h.timing, clk, func(n supervise.Notice) { h.say(saysNotice, "%d", n) })
	s := p.Status()
	sig, _ := s.Signal.(unix.Signal)
	h.say(saysEnded, "%d %d %t", s.Code, int(sig), lost)
	return 0
}

// listen takes what the worker says until the worker has gone: then the command is to end.
func (h *host) listen(in *bufio.Reader) {
	defer h.lost()
	drains := false
	for {
		line, err := in.ReadString('\n')
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case err != nil || word == wordEnd:
			return
		case word == wordDrain && !drains:
			drains = true
			close(h.asked)
		case word == wordUntil:
			if t, err := strconv.ParseInt(rest, 10, 64); err == nil {
				h.until.Store(t)
			}
		}
	}
}

// say tells the worker. A worker that has gone needs no word.
func (h *host) say(word, format string, args ...any) {
	_, _ = fmt.Fprintf(h.life, "%s %s\n", word, fmt.Sprintf(format, args...))
}

// ValidUntil implements [supervise.Lease].
func (h *host) ValidUntil() clock.Instant {
	if h.ctx.Err() != nil {
		return clock.Ended
	}
	return clock.Instant(h.until.Load())
}

// Context implements [supervise.Lease].
func (h *host) Context() context.Context { return h.ctx }

// errno is the number of the system's error that kept a command from being started, or 0.
func errno(err error) int {
	var n unix.Errno
	errors.As(err, &n)
	return int(n)
}
