package locks

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
)

// script is a history written by hand: each step is a call or an answer.
type script struct {
	h      *History
	calls  map[string]*Call
	shares map[string]*Share
	token  fence.Token
}

func newScript(h *History) *script {
	return &script{h: h, calls: map[string]*Call{}, shares: map[string]*Share{}}
}

func (s *script) call(who string, weight int) { s.calls[who] = s.h.Call(len(s.calls), weight) }

// granted answers with the next token.
func (s *script) granted(who string, slot int) {
	s.token++
	s.shares[who] = s.calls[who].Granted(s.token, slot)
}

// traded answers with the next token to who has a writer's share.
func (s *script) traded(who string) {
	s.token++
	s.shares[who] = s.calls[who].Traded(s.token)
}

func (s *script) take(who string, weight, slot int) { s.call(who, weight); s.granted(who, slot) }
func (s *script) refused(who string, weight int)    { s.call(who, weight); s.calls[who].Refused() }
func (s *script) givenUp(who string, weight int) *Doubt {
	s.call(who, weight)
	return s.calls[who].GivenUp()
}

// inTurn has who call for a mutex, in turn.
func (s *script) inTurn(who string) *Doubt {
	s.call(who, 1)
	return s.calls[who].InTurn()
}

func (s *script) refusedInTurn(who string) {
	turn := s.inTurn(who)
	s.calls[who].Refused()
	turn.Settled()
}
func (s *script) end(who string)   { s.shares[who].End() }
func (s *script) freed(who string) { s.end(who); s.shares[who].Freed() }

func TestCheck(t *testing.T) {
	semaphore, rw := func() *History { return Semaphore(3) }, RWMutex
	mutex := func() *History { return Semaphore(1) }
	for name, tt := range map[string]struct {
		kind func() *History
		tell func(s *script)
		ok   bool
	}{
		"a writer becomes a reader, beside others": {rw, func(s *script) {
			s.take("a", Writer, 0)
			s.call("a", 1)
			s.call("b", 1)
			s.traded("a")
			s.granted("b", 0)
			s.freed("b")
			s.refused("c", Writer)
			s.freed("a")
			s.take("c", Writer, 0)
		}, true},
		"a writer between a writer and what it becomes": {rw, func(s *script) {
			s.take("a", Writer, 0)
			s.call("a", 1)
			s.take("b", Writer, 0)
			s.freed("b")
			s.traded("a")
		}, false},
		"a reader beside a writer that becomes nothing": {rw, func(s *script) {
			s.take("a", Writer, 0)
			s.call("a", 1)
			s.take("b", 1, 0)
			s.shares["a"].EndSince(s.calls["a"])
			s.calls["a"].GivenUp()
		}, true},
		"a writer after a release is refused for one that became a reader and was released": {rw, func(s *script) {
			s.take("a", Writer, 0)
			s.call("a", 1)
			s.traded("a")
			s.freed("a")
			s.refused("b", Writer)
		}, false},
		"shares up to the limit":   {semaphore, func(s *script) { s.take("a", 1, 0); s.take("b", 2, 1) }, true},
		"one more than the limit":  {semaphore, func(s *script) { s.take("a", 2, 0); s.take("b", 2, 1) }, false},
		"refused, and it was full": {semaphore, func(s *script) { s.take("a", 2, 0); s.refused("b", 2) }, true},
		"refused, and it was free": {semaphore, func(s *script) { s.take("a", 1, 0); s.refused("b", 2) }, false},
		"refused after a release":  {semaphore, func(s *script) { s.take("a", 3, 0); s.freed("a"); s.refused("b", 1) }, false},
		"granted after a release":  {semaphore, func(s *script) { s.take("a", 3, 0); s.freed("a"); s.take("b", 3, 0) }, true},
		"refused while one releases": {semaphore, func(s *script) {
			s.take("a", 3, 0)
			s.end("a")
			s.refused("b", 1)
			s.freed("a")
		}, true},
		"refused after a death, and granted": {semaphore, func(s *script) {
			s.take("a", 3, 0)
			s.end("a")
			s.refused("b", 1)
			s.take("b", 3, 0)
		}, true},
		"all granted after a death, released, and refused": {semaphore, func(s *script) {
			s.take("a", 3, 0)
			s.end("a")
			s.take("b", 3, 0)
			s.freed("b")
			s.refused("c", 1)
		}, false},
		"granted before the holder has stopped": {semaphore, func(s *script) {
			s.take("a", 3, 0)
			s.take("b", 1, 1)
			s.freed("a")
		}, false},
		"granted at the time of the release": {semaphore, func(s *script) {
			s.take("a", 3, 0)
			s.call("b", 3)
			s.end("a")
			s.granted("b", 0)
			s.freed("a")
		}, true},
		"refused because of one that was given up": {semaphore, func(s *script) { s.givenUp("a", 3); s.refused("b", 1) }, true},
		"refused because of one that is taken back": {semaphore, func(s *script) {
			s.givenUp("a", 3)
			s.take("b", 3, 0)
			s.freed("b")
			s.refused("c", 1)
			s.take("d", 3, 0)
		}, true},
		"refused though too little was given up": {semaphore, func(s *script) {
			s.givenUp("a", 1)
			s.take("b", 1, 0)
			s.refused("c", 1)
		}, false},
		"refused though what was given up is gone": {semaphore, func(s *script) {
			s.givenUp("a", 3).Settled()
			s.refused("b", 1)
		}, false},
		"refused for another that was given up": {semaphore, func(s *script) {
			s.givenUp("a", 3).Settled()
			s.givenUp("b", 3)
			s.refused("c", 1)
		}, true},
		"refused for one that is in turn, and refused": {mutex, func(s *script) {
			s.take("a", 1, 0)
			turn := s.inTurn("b")
			s.freed("a")
			s.refusedInTurn("c")
			s.calls["b"].Refused()
			turn.Settled()
		}, true},
		"refused after one that was in turn": {mutex, func(s *script) {
			s.take("a", 1, 0)
			turn := s.inTurn("b")
			s.freed("a")
			s.calls["b"].Refused()
			turn.Settled()
			s.refusedInTurn("c")
		}, false},
		"refused after one whose turn is not known to be given back": {mutex, func(s *script) {
			s.take("a", 1, 0)
			turn := s.inTurn("b")
			s.freed("a")
			s.calls["b"].Refused()
			s.refusedInTurn("c")
			turn.Settled()
		}, true},
		"refused for one that is in turn, though who takes none is granted before it": {mutex, func(s *script) {
			s.take("a", 1, 0)
			turn := s.inTurn("b")
			s.freed("a")
			s.refusedInTurn("c")
			s.take("d", 1, 0)
			s.freed("d")
			s.granted("b", 0)
			s.freed("b")
			turn.Settled()
		}, true},
		"refused for a turn that outlasts the share, though another was granted since": {mutex, func(s *script) {
			turn := s.inTurn("a")
			s.granted("a", 0)
			s.end("a")
			s.take("b", 1, 0)
			s.freed("b")
			s.refusedInTurn("c")
			turn.Settled()
		}, true},
		"one that takes no turn is refused for one": {mutex, func(s *script) {
			turn := s.inTurn("a")
			s.granted("a", 0)
			s.freed("a")
			s.refused("b", 1)
			turn.Settled()
		}, false},
		"refused in turn for nobody":     {mutex, func(s *script) { s.refusedInTurn("a") }, false},
		"refused before it was given up": {semaphore, func(s *script) { s.refused("a", 1); s.givenUp("b", 3) }, false},
		"a slot twice":                   {semaphore, func(s *script) { s.take("a", 1, 0); s.take("b", 1, 0) }, false},
		"a slot again":                   {semaphore, func(s *script) { s.take("a", 1, 0); s.end("a"); s.take("b", 1, 0) }, true},
		"a token twice": {semaphore, func(s *script) {
			s.take("a", 1, 0)
			s.token--
			s.take("b", 1, 1)
		}, false},
		"a token that falls": {semaphore, func(s *script) {
			s.take("a", 1, 0)
			s.token -= 2
			s.take("b", 1, 1)
		}, false},
		"readers share":                 {rw, func(s *script) { s.take("a", 1, 0); s.take("b", 1, 1) }, true},
		"a writer among readers":        {rw, func(s *script) { s.take("a", 1, 0); s.take("b", Writer, 1) }, false},
		"a reader beside a writer":      {rw, func(s *script) { s.take("a", Writer, 0); s.take("b", 1, 1) }, false},
		"two writers":                   {rw, func(s *script) { s.take("a", Writer, 0); s.take("b", Writer, 1) }, false},
		"a writer after the readers":    {rw, func(s *script) { s.take("a", 1, 0); s.freed("a"); s.take("b", Writer, 0) }, true},
		"a reader after the writer":     {rw, func(s *script) { s.take("a", Writer, 0); s.end("a"); s.take("b", 1, 0) }, true},
		"a reader refused for a reader": {rw, func(s *script) { s.take("a", 1, 0); s.refused("b", 1) }, false},
		"a reader refused for a writer": {rw, func(s *script) { s.take("a", Writer, 0); s.refused("b", 1) }, true},
		"a writer refused for a reader": {rw, func(s *script) { s.take("a", 1, 0); s.refused("b", Writer) }, true},
		"a writer refused for nobody":   {rw, func(s *script) { s.take("a", 1, 0); s.freed("a"); s.refused("b", Writer) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := tt.kind()
			tt.tell(newScript(h))
			if err := h.Check(time.Minute); (err == nil) != tt.ok {
				t.Errorf("%v; want it allowed: %t", err, tt.ok)
			}
		})
	}
}
