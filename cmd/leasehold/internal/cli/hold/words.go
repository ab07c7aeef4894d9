package hold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
)

// Words writes what `run` has to say to standard error. None of its methods waits for the reader,
// who may have stopped the terminal: what doesn't fit is dropped. On a terminal a line at the
// bottom shows whom it waits for.
type Words struct {
	a    *cli.App
	name string
	Log  *slog.Logger
	live bool // there is a terminal to redraw a line on

	lines chan string
	// A wait begins or ends; what it carries is closed once the line is gone.
	turn  chan chan struct{}
	quit  chan struct{}
	ended chan struct{}

	mu     sync.Mutex
	since  clock.Instant // waiting since; 0 when not waiting
	holder *lease.HeldError
	shared string // who holds the shares, when it waits for one
	lost   bool   // it was said that the hold is lost
}

// NewWords returns the words of a command that holds name. Close ends them.
func NewWords(a *cli.App, name string) *Words {
	w := &Words{
		a: a, name: name, live: term.IsTerminal(int(a.Err.Fd())) && !a.Quiet() && a.Plain(),
		lines: make(chan string, 64), turn: make(chan chan struct{}), quit: make(chan struct{}), ended: make(chan struct{}),
	}
	w.Log = a.LogTo(w)
	a.About(fence.Sequencer{Name: name})
	go w.write()
	return w
}

// flushWait is how long the end of the program waits for a reader.
const flushWait = time.Second

// Close waits until everything is written, or a second has passed.
func (w *Words) Close() {
	close(w.quit)
	timer := clock.NewTimer(w.a.Clock, flushWait)
	defer timer.Stop()
	select {
	case <-w.ended:
	case <-timer.C:
	}
}

// Write implements [io.Writer], for the log.
func (w *Words) Write(line []byte) (int, error) {
	select {
	case w.lines <- strings.TrimSuffix(string(line), "\n"):
	default:
	}
	return len(line), nil
}

// Say writes a line.
func (w *Words) Say(format string, args ...any) { w.Log.Info(fmt.Sprintf(format, args...)) }

// Warn writes a line at the level of warnings.
func (w *Words) Warn(format string, args ...any) { w.Log.Warn(fmt.Sprintf(format, args...)) }

// SayOf is Say, or Warn, of what has become of a lease or of the session that keeps it.
func (w *Words) SayOf(level slog.Level, e lease.Event, format string, args ...any) {
	if e.Name != w.name { // a session's, which has a token of its own
		e.Name, e.Token, e.Holder = "", 0, ""
	}
	w.sayOf(level, e, format, args...)
}

// SayOther is Say of a term that another one holds.
func (w *Words) SayOther(term fence.Sequencer, format string, args ...any) {
	w.sayOf(slog.LevelInfo, term, format, args...)
}

// sayOf leaves out what people read in the text.
func (w *Words) sayOf(level slog.Level, about slog.LogValuer, format string, args ...any) {
	var attrs []slog.Attr
	if !w.a.Plain() {
		attrs = append(attrs, slog.Any("lease", about))
	}
	w.Log.LogAttrs(context.Background(), level, fmt.Sprintf(format, args...), attrs...)
}

// Retry says why an acquisition tries again: the reason may be one that waiting doesn't mend, such
// as a full disk.
func (w *Words) Retry(_ string, err error) {
	w.Warn("can't take %s yet, trying again: %v", w.name, err)
}

// frames of the spinner, and how long each is shown.
var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

const frameTime = 100 * time.Millisecond

// write is the goroutine that alone writes to standard error.
func (w *Words) write() {
	defer close(w.ended)
	shown := false
	wipe := func() {
		if shown {
			fmt.Fprint(w.a.Err, "\r\x1b[K")
		}
		shown = false
	}
	for frame := 0; ; frame++ {
		line, waiting := "", false
		if w.live {
			line, waiting = w.status(output.Width(w.a.Err))
		}
		if line == "" {
			wipe()
		} else {
			fmt.Fprintf(w.a.Err, "\r\x1b[K%c %s", frames[frame%len(frames)], line)
			shown = true
		}
		var tick <-chan struct{}
		var timer *clock.Timer
		if waiting {
			timer = clock.NewTimer(w.a.Clock, frameTime)
			tick = timer.C
		}
		select {
		case <-tick:
		case text := <-w.lines:
			wipe()
			fmt.Fprintln(w.a.Err, text)
		case seen := <-w.turn:
			wipe()
			close(seen)
		case <-w.quit:
			wipe()
			w.drain()
			return
		}
		timer.Stop()
	}
}

func (w *Words) drain() {
	for {
		select {
		case text := <-w.lines:
			fmt.Fprintln(w.a.Err, text)
		default:
			return
		}
	}
}

// status is the line at the bottom, cut to the width of the terminal; "" for none.
func (w *Words) status(width int) (line string, waiting bool) {
	w.mu.Lock()
	since, holder, shared := w.since, w.holder, w.shared
	w.mu.Unlock()
	waited := w.a.Clock.Now().Sub(since)
	switch {
	case since == 0:
		return "", false
	case holder == nil && shared != "":
		return output.CutMiddle(fmt.Sprintf("waiting for %s (%s): %s", w.name, output.Roughly(waited), shared), max(width-3, output.LeastCut)), true
	case holder == nil && waited < cli.Patience:
		return "", true
	case holder == nil:
		return output.CutMiddle(fmt.Sprintf("waiting for the store (%s)", output.Roughly(waited)), max(width-3, output.LeastCut)), true
	}
	now := w.a.Clock.Wall()
	line = fmt.Sprintf("waiting for %s (%s): held since %s by ", w.name, output.Roughly(waited), output.Ago(holder.Since, now))
	owner := output.CutMiddle(holder.Holder, max(width-3-len(line), output.LeastCut))
	return output.CutMiddle(line+owner, max(width-3, output.LeastCut)), true
}

// StartWait begins the wait of an acquisition.
func (w *Words) StartWait() { w.setWait(w.a.Clock.Now()) }

// EndWait ends the wait. After that the line at the bottom is gone.
func (w *Words) EndWait() { w.setWait(0) }

func (w *Words) setWait(since clock.Instant) {
	w.mu.Lock()
	w.since, w.holder, w.shared, w.lost = since, nil, "", false
	w.mu.Unlock()
	if !w.live {
		return
	}
	timer := clock.NewTimer(w.a.Clock, frameTime)
	defer timer.Stop()
	seen := make(chan struct{})
	for turn := w.turn; ; turn = nil {
		select {
		case turn <- seen:
		case <-seen:
			return
		case <-timer.C: // the terminal is stopped
			return
		}
	}
}

// WaitFor is told whom an acquisition waits for.
func (w *Words) WaitFor(h *lease.HeldError) {
	if shares := new(lock.HeldError); errors.As(h, &shares) {
		w.WaitForAny(ShareHeld(shares))
		return
	}
	w.mu.Lock()
	w.holder = h
	w.mu.Unlock()
	if !w.live {
		now := w.a.Clock.Wall()
		w.Say("waiting for %s: held by %s since %s (%s)", w.name, h.Holder, output.At(h.Since, now), output.Ago(h.Since, now))
	}
}

// WaitForAny is told, in words, what keeps an acquisition waiting that several stand in the way of.
func (w *Words) WaitForAny(text string) {
	w.mu.Lock()
	news := w.shared != text
	w.shared = text
	w.mu.Unlock()
	if news && !w.live {
		w.Say("waiting for %s: %s", w.name, text)
	}
}

// WaitForStore is called when opening the store takes long. On a terminal the line at the bottom
// says so.
func (w *Words) WaitForStore() {
	if !w.live {
		w.Say("%s", w.a.Slow())
	}
}

// Event is told what becomes of the lease.
func (w *Words) Event(e lease.Event) {
	if w.waits() {
		return // it is of the session that waits for a share
	}
	switch e.State {
	case lease.StateJeopardy:
		w.SayOf(slog.LevelWarn, e, "%s can't be renewed, and ends in %v unless that changes: %v", w.name, e.Left.Round(100*time.Millisecond), e.Err)
	case lease.StateLost:
		if w.lose() { // otherwise it is what a session has lost with itself
			w.SayOf(slog.LevelWarn, e, "%s is lost: %v", w.name, e.Err)
		}
	}
}

// waits reports whether an acquisition is under way.
func (w *Words) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.since != 0
}

// lose notes that the hold is lost, and reports whether that is news.
func (w *Words) lose() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := !w.lost
	w.lost = true
	return news
}

// Notice is told what is done to the command, with so much left of the lease.
func (w *Words) Notice(n supervise.Notice, cmd string, left time.Duration) {
	switch n {
	case supervise.Terminated:
		w.Say("telling %s to end (SIGTERM)%s", cmd, before(left))
	case supervise.Leftovers:
		w.Say("%s has ended; ending what it has left behind", cmd)
	case supervise.Asked:
		w.Say("telling %s to end (SIGTERM)", cmd)
	case supervise.NoGuard:
		w.Say("telling %s to end (SIGTERM): nothing would end it in time if this program couldn't", cmd)
	case supervise.Killed:
		w.Say("killing what has not ended (SIGKILL)")
	}
}

// Contained tells, who wants to know it, how everything that the command starts is found and ended.
func (w *Words) Contained(how supervise.Contain, why error) {
	if why != nil {
		w.Log.Debug(fmt.Sprintf("what CMD starts is ended by %s: %v", how.Words(), why))
		return
	}
	w.Log.Debug("what CMD starts is ended by " + how.Words())
}

// Guards is called when a guard process was started, or has ended.
func (w *Words) Guards(err error) { w.Warn("%v", err) }

// before says how much of the lease is left, if anything.
func before(left time.Duration) string {
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf(", %v before the lease ends", left.Round(100*time.Millisecond))
}

// Suspended says what a stop from the terminal does to the lease. This process stops next, so it
// waits for the line.
func (w *Words) Suspended(left time.Duration) {
	w.a.SayBelow("stopped; unless it continues before, %s is killed in %v, when the lease ends", w.name, left.Round(time.Second))
}
