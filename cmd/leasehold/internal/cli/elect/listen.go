package elect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

// The time limits of the server, whose answers come from memory.
const (
	answerWithin = 5 * time.Second
	endWithin    = time.Second
)

// sight is what --listen shows.
type sight struct {
	standing atomic.Bool // it is a candidate whose session lives
	terms    atomic.Uint64

	mu     sync.Mutex
	ctx    context.Context // of the term; nil without one
	term   election.Term
	leader election.Leader
}

func (s *sight) lead(ctx context.Context, term election.Term) {
	s.terms.Add(1)
	s.standing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.term = ctx, term
}

func (s *sight) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = nil
}

func (s *sight) see(l election.Leader) {
	s.standing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leader = l
}

// event notes whether the candidacy lives.
func (s *sight) event(ev lease.Event, session bool) {
	switch {
	case !session:
	case ev.State == lease.StateHeld:
		s.standing.Store(true)
	case ev.State == lease.StateLost:
		s.standing.Store(false)
	}
}

// leading returns this candidate's term, if it leads at this instant.
func (s *sight) leading() (election.Term, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term, s.ctx != nil && s.ctx.Err() == nil && s.term.Check() == nil
}

// electState is the JSON of /leader and /state.
type electState struct {
	Name      string      `json:"name"`
	Candidate string      `json:"candidate"`
	Leading   bool        `json:"leading"`
	Holder    string      `json:"holder,omitempty"` // of the last term that was seen
	Token     fence.Token `json:"token,omitempty"`
	Left      *float64    `json:"expires_in_seconds,omitempty"` // while leading
	Label     *labelState `json:"pod_label,omitempty"`
}

type labelState struct {
	Label string `json:"label"`
	Set   bool   `json:"set"`
	Error string `json:"error,omitempty"`
}

func (e *elector) state() electState {
	s := electState{Name: e.name, Candidate: e.me()}
	e.sight.mu.Lock()
	s.Holder, s.Token = e.sight.leader.Owner, e.sight.leader.Token
	e.sight.mu.Unlock()
	if term, ok := e.sight.leading(); ok {
		left := term.ValidUntil().Sub(e.a.Clock.Now()).Seconds()
		s.Leading, s.Holder, s.Token, s.Left = true, term.Leader, term.Token, &left
	}
	if e.keeper != nil {
		set, err := e.keeper.State()
		s.Label = &labelState{Label: e.opts.label, Set: set}
		if err != nil {
			s.Label.Error = cli.OneLine(err)
		}
	}
	return s
}

// checkSight checks what shows others who leads: --listen, and the label.
func (e *elector) checkSight() error {
	if e.opts.listen != "" {
		if _, err := cli.HostOf("listen", e.opts.listen); err != nil {
			return err
		}
	}
	return e.checkLabel()
}

// show serves the state on --listen, and keeps the label, until the function that it returns is
// called.
func (e *elector) show(ctx context.Context, fail context.CancelCauseFunc) (end func(), err error) {
	unlabel, err := e.label()
	if err != nil || e.opts.listen == "" {
		return unlabel, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", e.opts.listen)
	if err != nil {
		unlabel()
		return nil, fmt.Errorf("--listen %s: %w: name another address", e.opts.listen, err)
	}
	hs := &http.Server{Handler: e.handler(), ReadHeaderTimeout: answerWithin, ReadTimeout: answerWithin, WriteTimeout: answerWithin}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := hs.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("--listen %s: %w", e.opts.listen, err))
		}
	}()
	e.words.Say("%s: serving who leads on http://%s", e.name, l.Addr())
	return func() {
		unlabel()
		limited, cancel := clock.WithTimeout(context.Background(), clock.System(), endWithin)
		defer cancel()
		if hs.Shutdown(limited) != nil {
			_ = hs.Close()
		}
		<-ended
	}, nil
}

func (e *elector) handler() http.Handler {
	answer := func(w http.ResponseWriter, ok bool, contentType string, body []byte) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", contentType)
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write(append(body, '\n'))
	}
	state := func(leader bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			s := e.state()
			body, _ := json.Marshal(s)
			answer(w, s.Leading || !leader, "application/json", body)
		}
	}
	const text = "text/plain; charset=utf-8"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /leader", state(true))
	mux.HandleFunc("GET /state", state(false))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, true, text, []byte("ok")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if e.sight.standing.Load() {
			answer(w, true, text, []byte("ok"))
			return
		}
		answer(w, false, text, []byte("no candidate: the store has not answered, or the last candidacy is lost"))
	})
	r := prometheus.NewRegistry()
	r.MustRegister(electMetrics{e})
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	return mux
}

// electMetrics are the state as Prometheus reads it.
type electMetrics struct{ e *elector }

var (
	electLabels = []string{"lease"}
	descLeading = prometheus.NewDesc("leasehold_elect_leading", "1 while this candidate leads, else 0.", electLabels, nil)
	descStands  = prometheus.NewDesc("leasehold_elect_standing", "1 while this is a candidate whose session lives, else 0.", electLabels, nil)
	descToken   = prometheus.NewDesc("leasehold_elect_token", "Fencing token of the last term that was seen; 0 before.", electLabels, nil)
	descTerms   = prometheus.NewDesc("leasehold_elect_terms_total", "Terms of this candidate.", electLabels, nil)
	descLabel   = prometheus.NewDesc("leasehold_elect_pod_label", "1 while the label is on the pod, as far as is known, else 0.", electLabels, nil)
	descTrouble = prometheus.NewDesc("leasehold_elect_pod_label_failing", "1 while the label can't be made what it is to be, else 0.", electLabels, nil)
)

// Describe implements [prometheus.Collector].
func (m electMetrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLeading, descStands, descToken, descTerms, descLabel, descTrouble} {
		c <- d
	}
}

// Collect implements [prometheus.Collector].
func (m electMetrics) Collect(c chan<- prometheus.Metric) {
	s := m.e.state()
	gauge := func(d *prometheus.Desc, v float64) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, m.e.name)
	}
	gauge(descLeading, number(s.Leading))
	gauge(descStands, number(m.e.sight.standing.Load()))
	gauge(descToken, float64(s.Token))
	c <- prometheus.MustNewConstMetric(descTerms, prometheus.CounterValue, float64(m.e.sight.terms.Load()), m.e.name)
	if s.Label != nil {
		gauge(descLabel, number(s.Label.Set))
		gauge(descTrouble, number(s.Label.Error != ""))
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
