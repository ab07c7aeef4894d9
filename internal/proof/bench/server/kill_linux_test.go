package server

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// kills is how often the server is killed; LEASEHOLD_KILLS says otherwise.
const kills = 8

// TestKilled kills the server in the midst of requests, again and again, and starts another one on the same file. What a client
// has been told it holds, it still holds; nobody else is given it before its time is over; no token comes twice or falls; and no two
// holders rely on one name at a time.
func TestKilled(t *testing.T) {
	times := kills
	if text := os.Getenv("LEASEHOLD_KILLS"); text != "" {
		var err error
		if times, err = strconv.Atoi(text); err != nil {
			t.Fatalf("LEASEHOLD_KILLS=%s: %v", text, err)
		}
	}
	dir := t.TempDir()
	var flags []string
	if url := os.Getenv("LEASEHOLD_KILLS_STORE"); url != "" {
		flags = []string{"--store", url}
	}
	addr := servers.FreeAddr(t) // which nobody else takes while the server is down
	s := serve(t, dir, addr, flags...)
	l := &ledger{t: t, names: map[string]*past{}, url: s.url(), client: newClient(64)}
	end := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() { l.work(uint64(i), end) })
	}
	done := 0
	for ; done < times || l.little(times) && done < 10*times; done++ {
		time.Sleep(time.Duration(200+rand.IntN(500)) * time.Millisecond)
		s.stop(syscall.SIGKILL)
		s = serve(t, dir, addr, flags...)
		l.inspect()
	}
	close(end)
	clients.Wait()
	t.Logf("%d kills; %d grants, %d of them by a request sent again; %d renewals, %d releases; %d holds were alive after a kill",
		done, l.grants, l.again, l.renewals, l.releases, l.survived)
	if l.little(times) {
		t.Error("too little happened to tell anything")
	}
}

// little reports whether too little has happened for so many kills to have told anything.
func (l *ledger) little(kills int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.survived < kills || l.grants < 4*kills || l.again == 0
}

const holdTTL = 2 * time.Second

// hold is a grant that was acknowledged.
type hold struct {
	Holder    string  `json:"holder"`
	Token     uint64  `json:"token"`
	Sequencer string  `json:"sequencer"`
	Secret    string  `json:"secret"`
	ValidFor  float64 `json:"valid_for"`

	sent     time.Time // the request that was last acknowledged
	released bool      // a release was sent: whatever becomes of that, the holder has let go
}

func (h *hold) validUntil() time.Time {
	return h.sent.Add(time.Duration(h.ValidFor * float64(time.Second)))
}

// expires is before when nobody else may be granted the name.
func (h *hold) expires() time.Time { return h.sent.Add(holdTTL) }

// past is what was acknowledged about a name.
type past struct {
	current *hold
	told    time.Time       // when its grant was acknowledged
	highest uint64          // token
	tokens  map[uint64]bool // that were granted
}

// ledger judges all that the server says.
type ledger struct {
	t      *testing.T
	url    string
	client *http.Client

	mu                                          sync.Mutex
	names                                       map[string]*past
	grants, again, renewals, releases, survived int
}

// name returns what is known about a name. l.mu is held.
func (l *ledger) name(name string) *past {
	p := l.names[name]
	if p == nil {
		p = &past{tokens: map[uint64]bool{}}
		l.names[name] = p
	}
	return p
}

// ask sends a request; the error says that nothing is known about its outcome.
func (l *ledger) ask(method, path, body string, header ...string) (status int, text []byte, err error) {
	req, err := http.NewRequest(method, l.url+path, strings.NewReader(body)) //nolint:noctx // it ends with the server
	if err != nil {
		return 0, nil, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// work acquires, renews and releases, as one client, until end.
func (l *ledger) work(seed uint64, end <-chan struct{}) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	for n := 0; ; n++ {
		select {
		case <-end:
			return
		default:
		}
		name := fmt.Sprintf("name-%d", rnd.IntN(8))
		h := l.acquire(name, fmt.Sprintf("%d-%d", seed, n), rnd.IntN(2))
		for h != nil && rnd.IntN(4) > 0 && time.Now().Before(h.expires()) {
			time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
			if !l.renew(name, h) {
				h = nil
			}
		}
		if h != nil && rnd.IntN(8) > 0 { // else it is left to expire
			l.release(name, h)
		}
	}
}

// acquire asks for a name, and once more, with the same key, while nothing comes back.
func (l *ledger) acquire(name, key string, wait int) *hold {
	for try := range 40 {
		l.mu.Lock()
		least := l.name(name).highest
		l.mu.Unlock()
		sent := time.Now()
		body := fmt.Sprintf(`{"holder": "c", "ttl": %v, "wait": %d}`, holdTTL.Seconds(), wait)
		status, text, err := l.ask(http.MethodPost, "/v1/leases/"+name, body, "Idempotency-Key", key)
		switch {
		case err != nil:
			time.Sleep(25 * time.Millisecond) // it has been killed
			continue
		case status == http.StatusConflict, status == http.StatusServiceUnavailable:
			return nil
		case status != http.StatusCreated:
			l.t.Errorf("acquire %s: %d %s", name, status, text)
			return nil
		}
		h := &hold{sent: sent}
		if err := json.Unmarshal(text, h); err != nil {
			l.t.Errorf("acquire %s: %s: %v", name, text, err)
			return nil
		}
		l.granted(name, h, least, try > 0)
		return h
	}
	return nil
}

// granted judges a grant that has just come; least is the highest token that was known when it was asked for.
func (l *ledger) granted(name string, h *hold, least uint64, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, now := l.name(name), time.Now()
	if p.tokens[h.Token] {
		l.t.Errorf("%s: token %d was granted twice", name, h.Token)
	}
	if h.Token <= least {
		l.t.Errorf("%s: token %d after %d", name, h.Token, least)
	}
	if c := p.current; c != nil && !c.released && c.Token < h.Token && now.Before(c.expires()) {
		l.t.Errorf("%s: %s was granted it %v before that of %s was over", name, h.Holder, c.expires().Sub(now), c.Holder)
	}
	p.tokens[h.Token] = true
	if h.Token > p.highest {
		p.highest, p.current, p.told = h.Token, h, now
	}
	l.grants++
	if again {
		l.again++
	}
}

// renew renews a hold, and reports whether it is still one.
func (l *ledger) renew(name string, h *hold) bool {
	sent := time.Now()
	status, text, err := l.ask(http.MethodPut, "/v1/leases/"+name, "", "Leasehold-Sequencer", h.Sequencer, "Leasehold-Secret", h.Secret)
	if err != nil {
		time.Sleep(25 * time.Millisecond)
		return time.Now().Before(h.validUntil())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var renewed hold
	switch {
	case status == http.StatusOK && json.Unmarshal(text, &renewed) == nil:
		if p := l.name(name); p.current != h && p.told.Before(sent) { // else the answer may have been longer on its way than the grant's
			l.t.Errorf("%s: %s renewed under token %d after %d was granted", name, h.Holder, h.Token, p.current.Token)
		}
		h.sent, h.ValidFor = sent, renewed.ValidFor
		l.renewals++
		return true
	case status == http.StatusConflict && time.Now().Before(h.expires()):
		l.t.Errorf("%s: %s lost it %v before its time: %s", name, h.Holder, time.Until(h.expires()), text)
	case status != http.StatusConflict && status != http.StatusServiceUnavailable:
		l.t.Errorf("renew %s: %d %s", name, status, text)
	}
	return false
}

func (l *ledger) release(name string, h *hold) {
	l.mu.Lock()
	h.released = true
	l.releases++
	l.mu.Unlock()
	_, _, _ = l.ask(http.MethodDelete, "/v1/leases/"+name, "", "Leasehold-Sequencer", h.Sequencer, "Leasehold-Secret", h.Secret) // else it expires
}

// inspect looks, after a kill, whether what was acknowledged is there.
func (l *ledger) inspect() {
	l.mu.Lock()
	holds := map[string]hold{}
	highest := map[string]uint64{}
	for name, p := range l.names {
		highest[name] = p.highest
		if p.current != nil && !p.current.released {
			holds[name] = *p.current
		}
	}
	l.mu.Unlock()
	for name, least := range highest {
		status, text, err := l.ask(http.MethodGet, "/v1/leases/"+name, "")
		var now hold
		if err != nil || status != http.StatusOK || json.Unmarshal(text, &now) != nil {
			l.t.Errorf("%s: %d %s %v", name, status, text, err)
			continue
		}
		if now.Token < least {
			l.t.Errorf("%s: token %d is on record after %d was granted", name, now.Token, least)
		}
		was, ok := holds[name]
		l.mu.Lock()
		if c := l.name(name).current; ok && c.Token == was.Token && !c.released && time.Now().Before(was.expires()) {
			l.survived++
			if now.Holder != was.Holder || now.Token != was.Token {
				l.t.Errorf("%s: held by %q under %d, while %s was told %d", name, now.Holder, now.Token, was.Holder, was.Token)
			}
		}
		l.mu.Unlock()
	}
}
