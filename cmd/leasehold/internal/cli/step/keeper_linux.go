package step

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/holdfile"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/open"
)

// The descriptors of a keeper, beside the pipe of its orders, which is its standard input.
const (
	readyFD = 3 + iota // says "ok", or what is wrong
	holdFD             // the file of the hold
	// The parent: a pidfd, so that no later process of that number is taken for it.
	parentFD
	// The file whose byte is locked by who has the descriptor; the parent's again without one.
	lockedFD
)

// companion is a keeper, before it starts and while it does.
type companion struct {
	parent int
	pidfd  *os.File
	proc   *os.Process
}

// newCompanion looks for the parent, before anything is acquired.
func newCompanion(o options) (*companion, error) {
	if err := cli.NeedProc(); err != nil {
		return nil, err
	}
	c := &companion{parent: o.parent}
	if c.parent == 0 {
		c.parent = os.Getppid()
	}
	fd, err := unix.PidfdOpen(c.parent, 0)
	if err != nil {
		return nil, cli.Usage("--parent %d: no such process, or one that can't be watched: %w", c.parent, err)
	}
	c.pidfd = os.NewFile(uintptr(fd), "parent")
	if o.parent == 0 && os.Getppid() != c.parent {
		return nil, errors.Join(errors.New("the process that started this one has ended"), c.pidfd.Close())
	}
	return c, nil
}

func (c *companion) close() { _ = c.pidfd.Close() }

// stop ends a keeper that was started for nothing.
func (c *companion) stop() {
	if c.proc != nil {
		_ = c.proc.Kill()
		_, _ = c.proc.Wait()
	}
}

// start starts the keeper, and returns when it has renewed the hold once.
func (c *companion) start(file *holdfile.File, o options, url string, ttl time.Duration) error {
	path, err := filepath.Abs(o.file)
	if err != nil {
		return err
	}
	told := orders{Store: url, Path: path, TTL: ttl, OnLost: o.onLost, Parent: c.parent}
	last := c.pidfd
	if o.locked != nil {
		told.Byte, last = o.locked.at, o.locked.watch
	}
	line, err := json.Marshal(told)
	if err != nil {
		return err
	}
	in, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	ready, answer, err := os.Pipe()
	if err != nil {
		return errors.Join(err, in.Close(), tell.Close())
	}
	defer func() { _ = ready.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		err = keepOwn()
	}
	if err == nil {
		c.proc, err = os.StartProcess("/proc/self/exe", []string{KeeperName, KeeperArg}, &os.ProcAttr{
			Dir: "/", Env: os.Environ(), Files: []*os.File{in, null, null, answer, file.Handle(), c.pidfd, last}, Sys: &unix.SysProcAttr{Setsid: true},
		})
	}
	_, _, _ = in.Close(), answer.Close(), null.Close()
	if err == nil {
		_, err = tell.Write(line)
	}
	if err = errors.Join(err, tell.Close()); err != nil {
		return fmt.Errorf("no process can be started that renews the hold: %w", err)
	}
	said, err := io.ReadAll(io.LimitReader(ready, 1<<16))
	switch text := strings.TrimSpace(string(said)); {
	case err != nil:
		return err
	case text == "":
		return errors.New("the process that is to renew the hold ended at once")
	case text != "ok":
		return fmt.Errorf("the process that is to renew the hold can't: %s", text)
	}
	return c.proc.Release()
}

// keepOwn has no child inherit what this program's caller had open, beside what it is given: a
// descriptor that is locked would stay open, and so would the pipes of who waits for their end.
func keepOwn() error {
	const first = 3
	if err := unix.CloseRange(first, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err == nil {
		return nil
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// keeper renews a hold.
type keeper struct {
	orders
	clk   clock.Clock
	file  *holdfile.File
	hold  holdfile.Hold
	term  term
	until clock.Instant // when the hold ends unless it is renewed
	ended chan struct{} // closed when the parent has ended, or the descriptor was closed
}

// KeeperMain is the life of a keeper. It ends with the parent, or when the descriptor is closed, or
// when the hold is over.
func KeeperMain() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2)
	_ = os.WriteFile("/proc/self/comm", []byte(KeeperName), 0) // it is for people
	for _, fd := range []int{readyFD, holdFD, parentFD, lockedFD} {
		unix.CloseOnExec(fd)
	}
	answer := os.NewFile(readyFD, "ready")
	k := &keeper{clk: clock.System(), ended: make(chan struct{})}
	err := k.begin()
	if err != nil {
		_, _ = fmt.Fprintln(answer, cli.OneLine(err))
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(answer, "ok")
	_ = answer.Close()
	k.work()
	_ = k.term.st.Close()
}

// begin reads the orders, opens the store and renews once.
func (k *keeper) begin() error {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(&k.orders)
	}
	if err != nil {
		return fmt.Errorf("its orders: %w", err)
	}
	// A description of its own: who else has this one would share its lock.
	own, err := unix.Open("/proc/self/fd/"+strconv.Itoa(holdFD), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the file of the hold: %w", err)
	}
	_ = unix.Close(holdFD)
	k.file = holdfile.FromFD(uintptr(own), k.Path)
	if k.hold, err = k.file.Lock(); err != nil {
		return err
	}
	if err := k.file.Unlock(); err != nil {
		return err
	}
	url, err := open.Parse(k.Store)
	if err != nil {
		return err
	}
	ctx, cancel := clock.WithTimeout(context.Background(), k.clk, cli.OpenLimit)
	defer cancel()
	st, err := url.Open(ctx, open.Options{MustExist: true})
	if err != nil {
		return err
	}
	k.term = term{st: st, clk: k.clk}
	if k.until, err = k.term.renew(ctx, k.hold, 0); err != nil {
		return err
	}
	go k.watch()
	return k.note(func(h *holdfile.Hold) { h.Keeper = os.Getpid() })
}

// watch waits for the end of the parent, or of the descriptor. What can't be waited for counts as
// being there: to release the name would let another in beside it.
func (k *keeper) watch() {
	wait := func() error {
		_, err := unix.Poll([]unix.PollFd{{Fd: parentFD, Events: unix.POLLIN}}, -1)
		return err
	}
	if k.Byte != 0 {
		wait = func() error { return awaitByte(lockedFD, k.Byte) }
	}
	for wait() != nil {
		_ = clock.Sleep(context.Background(), k.clk, k.TTL/retries)
	}
	close(k.ended)
}

// note writes into the file until when the hold is valid, and what change says.
func (k *keeper) note(change func(*holdfile.Hold)) error {
	h, err := k.file.Lock()
	if err != nil {
		return err
	}
	h.Until, h.Boot = k.until, holdfile.Boot()
	change(&h)
	return errors.Join(k.file.Write(h), k.file.Unlock())
}

// work renews until there is nothing more to renew.
func (k *keeper) work() {
	next := k.clk.Now().Add(k.TTL / 4)
	for {
		timer := clock.NewTimer(k.clk, max(next.Sub(k.clk.Now()), 0))
		select {
		case <-k.ended:
			timer.Stop()
			k.leave()
			return
		case <-timer.C:
		}
		err := k.renew()
		switch left := k.until.Sub(k.clk.Now()) - k.TTL/spare; {
		case err == nil:
			next = k.clk.Now().Add(k.TTL / 4)
			err = k.note(func(*holdfile.Hold) {})
			if errors.Is(err, holdfile.ErrRemoved) {
				return // it was released; what another process could renew, it does without a file
			}
		case errors.Is(err, lease.ErrLost), errors.Is(err, errWrong):
			k.lost(err)
			return
		case left <= 0:
			k.lost(fmt.Errorf("it was not renewed in time: %w", err))
			return
		default:
			next = k.clk.Now().Add(min(k.TTL/retries, left))
		}
	}
}

// renew renews once, until the hold counts as lost at most.
func (k *keeper) renew() error {
	ctx, cancel := clock.WithDeadline(context.Background(), k.clk, k.until.Add(-k.TTL/spare))
	defer cancel()
	until, err := k.term.renew(ctx, k.hold, 0)
	if err == nil {
		k.until = until
	}
	return err
}

// leave ends the hold of a descriptor that nobody has open any more. That of a parent that has
// ended is left to expire: what the parent has started may be at work.
func (k *keeper) leave() {
	if k.Byte == 0 {
		return
	}
	h, err := k.file.Lock()
	if err != nil {
		return // it was released
	}
	if err := k.term.release(context.Background(), h); err == nil || errors.Is(err, lease.ErrLost) {
		_ = k.file.Remove()
	}
}

// lost notes that the hold is lost, and has the parent end if that is wanted. A file that was
// removed says that the hold was released instead.
func (k *keeper) lost(why error) {
	err := k.note(func(h *holdfile.Hold) { h.Lost, h.Keeper = cli.OneLine(why), 0 })
	if errors.Is(err, holdfile.ErrRemoved) || k.OnLost != lostTerm {
		return
	}
	started := descendants(k.Parent)
	// The parent comes first: a shell whose command has ended would go on with the next one. If it
	// has ended itself, its number, and what that one has started, are another's.
	if unix.PidfdSendSignal(parentFD, unix.SIGTERM, nil, 0) != nil {
		return
	}
	for _, pid := range started {
		_ = unix.Kill(pid, unix.SIGTERM)
	}
}

// descendants returns what a process has started, as far as it can be found: children, and theirs.
func descendants(pid int) []int {
	var all []int
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}
