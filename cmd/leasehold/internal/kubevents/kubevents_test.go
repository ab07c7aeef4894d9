package kubevents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

// sink is an API server in virtual time.
type sink struct {
	mu    sync.Mutex
	fail  error
	hang  bool
	tried []time.Duration // since the beginning
	wrote []string
	said  []string
	begun time.Time
}

func (s *sink) write(ctx context.Context, n note) error {
	s.mu.Lock()
	s.tried = append(s.tried, time.Since(s.begun))
	fail, hang := s.fail, s.hang
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if fail == nil {
		s.mu.Lock()
		s.wrote = append(s.wrote, n.name+": "+n.text)
		s.mu.Unlock()
	}
	return fail
}

func (s *sink) set(fail error, hang bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.hang = fail, hang
}

func (s *sink) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, text)
}

func inBubble(t *testing.T, f func(t *testing.T, s *sink, r *Recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{begun: time.Now()}
		f(t, s, start(s.write, func() {}, clocktest.New(0), s.say))
	})
}

// TestFailuresAreToldOnce: terms that begin every second for a day, where no Event can be written, cause 29 requests and one warning.
func TestFailuresAreToldOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sink, r *Recorder) {
		s.set(errors.New("forbidden"), false)
		for range 24 * 3600 {
			r.Leads("job", "a", 1)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		// After 0, 1, 3, 7, 15, 31 and 63 minutes, and then each hour.
		if len(s.tried) != 29 || len(s.said) != 1 || !strings.Contains(s.said[0], "forbidden") {
			t.Errorf("%d requests, and it said %q", len(s.tried), s.said)
		}
		s.set(nil, false)
		for range 2 * 3600 {
			r.Leads("job", "a", 2)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if len(s.wrote) < 3600 || s.wrote[0] != "job: a became leader (token 2)" {
			t.Errorf("once it is allowed: %d Events", len(s.wrote))
		}
		s.set(errors.New("forbidden again"), false)
		r.Stopped("job", "a", 2)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(s.said) != 2 {
			t.Errorf("it said %q", s.said)
		}
		r.Close()
	})
}

// TestAHangDelaysNothing: neither a note nor, for longer than a second, the end.
func TestAHangDelaysNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sink, r *Recorder) {
		s.set(nil, true)
		begun := time.Now()
		for range 1000 {
			r.Leads("job", "a", 1)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("1000 notes took %v", took)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(s.tried) != 1 || len(s.said) != 1 {
			t.Errorf("%d requests, and it said %q", len(s.tried), s.said)
		}
		time.Sleep(leastOff)
		r.Stopped("job", "a", 1)
		begun = time.Now()
		r.Close()
		if took := time.Since(begun).Round(time.Millisecond); took != farewell {
			t.Errorf("Close took %v", took)
		}
		r.Close()
		r.Leads("job", "a", 2)
		if len(s.said) != 1 {
			t.Errorf("it said %q", s.said)
		}
	})
}

// TestTheLastEventIsWritten: what was noted before Close is.
func TestTheLastEventIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sink, r *Recorder) {
		var want []string
		for i := range 4 {
			r.Leads("job", "a", 1)
			r.Stopped("job", "a", 1)
			want = append(want, "job: a became leader (token 1)", "job: a stopped leading (token 1)")
			if i == 2 {
				synctest.Wait()
			}
		}
		r.Close()
		if !slices.Equal(s.wrote, want) {
			t.Errorf("%q, want %q", s.wrote, want)
		}
		if took := time.Since(s.begun); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// TestNone: where there is no cluster, all is done by a nil recorder.
func TestNone(t *testing.T) {
	var r *Recorder
	r.Leads("job", "a", 1)
	r.Stopped("job", "a", 1)
	r.Close()
}

// TestEventNames: a Lease's name may be as long as the Event's may.
func TestEventNames(t *testing.T) {
	for _, lease := range []string{"a", strings.Repeat("a", 253), strings.Repeat("a", 229) + "." + strings.Repeat("b", 20), strings.Repeat("a-", 120) + "a"} {
		got := eventName(lease, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
		if len(got) > 253 || strings.Contains(got, "..") || strings.Contains(got, "-.") {
			t.Errorf("%s: %s", lease, fmt.Sprint(len(got), " ", got))
		}
	}
}
