package gate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/gate"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// hang is a program that answers to a write when the test says so, and tells when it is cut off.
type hang struct {
	release chan struct{}
	cut     chan time.Time
}

func (w *world) hang() *hang {
	h := &hang{make(chan struct{}), make(chan time.Time, 8)}
	w.setServe(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-h.release:
		case <-r.Context().Done():
			h.cut <- time.Now()
		}
	})
	return h
}

// within reports whether got is want, or up to 50 ms later.
func within(got, want time.Time) bool {
	return !got.Before(want) && got.Sub(want) < 50*time.Millisecond
}

func TestWriteInFlightIsCutBeforeTheEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{MinLeft: 2 * time.Second})
		h, up := i.hold(), w.hang()
		time.Sleep(time.Hour) // the term is renewed for as long
		answered := i.start("POST", "/jobs", "a job")
		i.setCut(true)
		end := h.end()
		if s := i.gate.State(); s.InFlight != 1 || !s.Open {
			t.Errorf("%+v", s)
		}
		at := <-up.cut
		if !within(at, end.Add(-500*time.Millisecond)) || h.lease.Check() != nil {
			t.Errorf("cut %v before the end: %v", end.Sub(at), h.lease.Check())
		}
		if a := <-answered; a.String() != "503 cut unknown" || a.body.Token != h.lease.Token() {
			t.Errorf("%s: %s", a, a.text)
		}
		<-h.returned
		if !h.at.Before(end) || !errors.Is(h.err, gate.ErrExpiring) {
			t.Errorf("%v, %v before the end", h.err, end.Sub(h.at))
		}
		w.requests()
		i.expect("POST", "/jobs", "503 not_holder not_done", "")
		if s := i.gate.State(); s.Cut != 1 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// What has an answer already can't be told that it was cut, but that it broke off.
func TestAnswerIsBrokenOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{})
		h := i.hold()
		w.setServe(func(rw http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprintln(rw, "a line")
				_ = http.NewResponseController(rw).Flush()
				time.Sleep(time.Second)
			}
		})
		write, read := i.start("POST", "/jobs", ""), i.start("GET", "/jobs", "")
		i.setCut(true)
		end := h.end()
		a := <-write
		if !errors.Is(a.err, io.ErrUnexpectedEOF) || !time.Now().Before(end) || len(a.text) < 30 {
			t.Errorf("%v %v before the end, after %q", a.err, time.Until(end), a.text)
		}
		time.Sleep(time.Hour)
		select {
		case a := <-read:
			t.Errorf("a read has ended: %s", a)
		default:
		}
		_ = i.server.Close()
	})
}

// A gate that closes lets writes finish, keeps the lease meanwhile, and takes no new ones on.
func TestDrain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{Drain: time.Minute})
		h, up := i.hold(), w.hang()
		first, second := i.start("POST", "/jobs/1", ""), i.start("POST", "/jobs/2", "")
		h.close(errors.New("stop"))
		synctest.Wait()
		w.requests()
		i.expect("POST", "/jobs", "503 closing not_done", "")
		time.Sleep(30 * time.Second)
		up.release <- struct{}{}
		up.release <- struct{}{}
		for _, c := range []<-chan answer{first, second} {
			if a := <-c; a.String() != "200" {
				t.Errorf("%s", a)
			}
		}
		<-h.returned
		if h.err == nil || h.err.Error() != "stop" || h.lease.Check() != nil || i.gate.State().Cut != 0 {
			t.Errorf("%v, %v, %+v", h.err, h.lease.Check(), i.gate.State())
		}
	})
}

func TestDrainHasItsLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		drain time.Duration
		then  func(h *held)
		after time.Duration
	}{
		{"time is up", 10 * time.Second, func(*held) {}, 10 * time.Second},
		{"the validity ends", time.Hour, func(h *held) { h.setCut(true) }, validity - 250*time.Millisecond},
		{"it is taken out of its hands", time.Hour, func(h *held) {
			h.w.Edit("job", func(rec *store.Record) { rec.Owner, rec.Token = "another", rec.Token+1 })
		}, 5 * time.Second}, // the next renewal
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				i := w.instance(gate.Options{Drain: c.drain})
				h, up := i.hold(), w.hang()
				answered := i.start("POST", "/jobs", "")
				h.close(nil)
				began := time.Now()
				c.then(h)
				at := <-up.cut
				if d := at.Sub(began); d > c.after+10*time.Millisecond || d < c.after*3/4 {
					t.Errorf("cut after %v, want %v", d, c.after)
				}
				if a := <-answered; a.String() != "503 cut unknown" {
					t.Errorf("%s", a)
				}
				<-h.returned
			})
		})
	}
}

// The lease is released when the last write is over, and not before.
func TestReleaseComesLast(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{})
		up := w.hang()
		ran := make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			ran <- i.m.Run(ctx, "job", func(ctx context.Context, l *lease.Lease) error { return i.gate.Open(ctx, l) })
		}()
		time.Sleep(time.Second)
		answered := i.start("POST", "/jobs", "")
		stop()
		time.Sleep(4 * time.Second)
		if rec := w.Get("job"); rec.Owner != i.m.Holder() {
			t.Errorf("%+v, while a write is under way", rec)
		}
		up.release <- struct{}{}
		if a := <-answered; a.String() != "200" {
			t.Errorf("%s", a)
		}
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if rec := w.Get("job"); rec.Owner != "" {
			t.Errorf("%+v", rec)
		}
	})
}

// A client that neither sends nor reads doesn't keep a write from being cut.
func TestCutDoesNotWaitForTheClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{Stall: time.Hour, Drain: time.Second})
		h := i.hold()
		w.hang()
		c, err := i.server.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "POST /jobs HTTP/1.1\r\nHost: gate\r\nContent-Length: 100\r\n\r\nand no more"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := i.gate.State().InFlight; n != 1 {
			t.Fatalf("%d in flight", n)
		}
		h.close(nil)
		began := time.Now()
		<-h.returned
		if d := h.at.Sub(began); d > 2*time.Second+10*time.Millisecond {
			t.Errorf("closed after %v", d)
		}
		time.Sleep(time.Minute)
		if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
			t.Errorf("a minute later there is %q, %v", b, err)
		}
	})
}

// A client that keeps the gate waiting in the middle of a request is dropped. A deaf one needs a real network: see TestDeafClient.
func TestStall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{Stall: 10 * time.Second})
		i.hold()
		w.hang()
		body, end := io.Pipe()
		defer end.Close()
		began := time.Now()
		go func() {
			for range 3 {
				time.Sleep(9 * time.Second)
				_, _ = end.Write([]byte("a bit"))
			}
		}()
		a := send(i.client, "POST", "http://gate/jobs", body)
		if took := time.Since(began); a.String() != "408 client_stalled unknown" || took != 37*time.Second {
			t.Errorf("%s after %v", a, took)
		}
	})
}

// Nobody is dropped for what the upstream does not do; and what it has done so far comes through.
func TestSlowUpstream(t *testing.T) {
	for name, client := range map[string]func(*instance) *http.Client{"HTTP/1": func(i *instance) *http.Client { return i.client }, "HTTP/2": (*instance).http2} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				i := w.instance(gate.Options{Stall: time.Second})
				i.hold()
				w.setServe(func(rw http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					rw.Header().Set("Content-Length", "4")
					for _, half := range []string{"he", "re"} {
						time.Sleep(time.Minute)
						_, _ = io.WriteString(rw, half)
						_ = http.NewResponseController(rw).Flush()
					}
					time.Sleep(time.Minute)
				})
				began := time.Now()
				resp, err := client(i).Post("http://gate/jobs", "text/plain", strings.NewReader("a job"))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				b := make([]byte, 2)
				for n, half := range []string{"he", "re"} {
					if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != half || time.Since(began) != time.Duration(n+1)*time.Minute {
						t.Errorf("%q after %v, %v", b, time.Since(began), err)
					}
				}
			})
		})
	}
}

// A process that was stopped past the end of its term takes on nothing when it wakes up, though no timer has fired yet.
func TestPausedPastTheEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{})
		h := i.hold()
		read := make(chan string, 1)
		w.setServe(func(_ http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			read <- string(b)
		})
		body, end := io.Pipe()
		answered := make(chan answer, 1)
		go func() { answered <- send(i.client, "POST", "http://gate/jobs", body) }()
		_, _ = end.Write([]byte("in time, "))
		synctest.Wait()
		i.Clk.Pause()
		time.Sleep(validity)
		if h.lease.Check() == nil {
			t.Fatal("the term goes on")
		}
		_, _ = end.Write([]byte("too late"))
		if got := <-read; got != "in time, " {
			t.Errorf("the program has read %q", got)
		}
		_ = end.Close()
		if a := <-answered; a.String() != "503 cut unknown" && a.err == nil { // a client that is sending may not see it
			t.Errorf("%s", a)
		}
		w.requests()
		a := i.do("POST", "/jobs", "")
		if got := w.requests(); a.code != http.StatusServiceUnavailable || got != "" {
			t.Errorf("%s, %q reached the program", a, got)
		}
		i.Clk.Resume()
	})
}

func TestOpenTwice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{})
		h := i.hold()
		if err := i.gate.Open(t.Context(), h.lease); err == nil || !strings.Contains(err.Error(), "it is open under") {
			t.Errorf("%v", err)
		}
		h.close(nil)
		<-h.returned
		if err := h.lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := h.lease.Token()
		h = i.hold()
		if h.lease.Token() <= first {
			t.Errorf("token %d after %d", h.lease.Token(), first)
		}
		i.expect("POST", "/jobs", "200", "POST /jobs "+h.lease.Token().String())
	})
}
