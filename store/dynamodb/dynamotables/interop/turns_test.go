package interop

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/lease"
)

func seconds(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// section is what only one may be in.
type section struct {
	mu     sync.Mutex
	inside map[string]func() bool // who, and whether its lease is valid still
	last   string                 // who was inside
	over   map[string]int         // how often the lease went over from the other side, by who got it
}

// enter is in the section for a moment, and fails the test if somebody else is whose lease is valid.
func (s *section) enter(t testing.TB, who string, valid func() bool) {
	s.mu.Lock()
	for other, valid := range s.inside {
		if valid() {
			t.Errorf("%s enters, and %s is inside", who, other)
		}
	}
	if s.inside == nil {
		s.inside = map[string]func() bool{}
	}
	if s.over == nil {
		s.over = map[string]int{}
	}
	if s.last != who && s.last != "" {
		s.over[who]++
	}
	s.last = who
	id := fmt.Sprintf("%s (%p)", who, &valid)
	s.inside[id] = valid
	s.mu.Unlock()
	time.Sleep(25 * time.Millisecond) // for the others to try
	s.mu.Lock()
	delete(s.inside, id)
	s.mu.Unlock()
}

// overs returns how often the lease went over to who from the other side.
func (s *section) overs(who string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over[who]
}

const us, them = "Leasehold", "the neighbour"

// handOvers is how often a lease has to go over to the other side, each way, for the proof at length.
const handOvers = "LEASEHOLD_HANDOVERS"

// bothContend: two of ours and two of theirs want one lease, as fast as they can. Never are two inside. With
// LEASEHOLD_HANDOVERS=100 the lease goes over to the other side that often, each way.
func bothContend(t testing.TB, n neighbourhood) {
	const (
		turns = 10                     // of each side at least
		rest  = 100 * time.Millisecond // after a turn, for those who read before they write
		pause = 5 * time.Millisecond
	)
	overs, _ := strconv.Atoi(os.Getenv(handOvers)) // 0 where it isn't set
	w := n.world(t)
	var section section
	var ours, theirs atomic.Int32
	enough := func() bool {
		return t.Failed() || ours.Load() >= turns && theirs.Load() >= turns && section.overs(us) >= overs && section.overs(them) >= overs
	}
	deadline := time.Now().Add(5 * time.Minute)
	done := make(chan struct{}, 4)
	for range 2 {
		m := w.manager(w.url, ttl)
		go func() {
			defer func() { done <- struct{}{} }()
			for !enough() && time.Now().Before(deadline) {
				l, err := m.TryAcquire(t.Context(), "job")
				switch {
				case err == nil:
					section.enter(t, us, func() bool { return l.Check() == nil })
					ours.Add(1)
					if err := l.Release(t.Context()); err != nil {
						t.Logf("release: %v", err) // a store that is slow; the lease expires
					}
					time.Sleep(rest)
				case !errors.Is(err, lease.ErrHeld):
					t.Logf("Leasehold tries: %v", err)
				}
				time.Sleep(pause)
			}
		}()
	}
	for i := range 2 {
		they := n.start(t, w, "they"+strconv.Itoa(i))
		go func() {
			defer func() { done <- struct{}{} }()
			for !enough() && time.Now().Before(deadline) {
				if they.acquire("job") {
					section.enter(t, them, func() bool { return true })
					theirs.Add(1)
					they.release()
					time.Sleep(rest)
				}
				time.Sleep(pause)
			}
		}()
	}
	for range 4 {
		<-done
	}
	if !enough() {
		t.Errorf("%d turns of ours and %d of theirs, want %d of each; %d and %d hand-overs, want %d", ours.Load(), theirs.Load(), turns,
			section.overs(us), section.overs(them), overs)
	}
	t.Logf("%d turns of ours, %d of theirs; hand-overs to us: %d, to them: %d", ours.Load(), theirs.Load(), section.overs(us), section.overs(them))
}

// theyKeepAttributes: what a neighbour keeps in its row beside the lease is there after our terms.
func theyKeepAttributes(t testing.TB, n neighbourhood) {
	w := n.world(t)
	they, m := n.start(t, w, "they"), w.manager(w.url, ttl)
	if !they.acquire("job") {
		t.Fatal("a free name is refused the neighbour")
	}
	_, err := w.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: map[string]types.AttributeValue{w.key: &types.AttributeValueMemberS{Value: "job"}},
		UpdateExpression:          ptr("SET #d = :d, team = :t"),
		ExpressionAttributeNames:  map[string]string{"#d": "data"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":d": &types.AttributeValueMemberB{Value: []byte{0, 1}}, ":t": &types.AttributeValueMemberS{Value: "payments"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	they.proc().kill()
	l := acquire(t, m, "job")
	during(t, ttl, func() { // renewals
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
	})
	release(t, l)
	row := w.row("job")
	data, _ := row["data"].(*types.AttributeValueMemberB)
	if text(row["team"]) != "payments" || data == nil || string(data.Value) != "\x00\x01" {
		t.Errorf("the row after our term: %v", row)
	}
}

func ptr[T any](v T) *T { return &v }
