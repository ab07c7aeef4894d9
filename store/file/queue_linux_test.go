package file

import (
	"encoding/binary"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
)

// drawn returns how many numbers have been drawn at the gate.
func drawn(t testing.TB, g *gate) uint64 {
	t.Helper()
	var counter [8]byte
	if _, err := g.f.ReadAt(counter[:], 0); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(counter[:])
}

func testGate(t testing.TB, path string) *gate {
	t.Helper()
	g := openGate(path)
	if g.f == nil {
		t.Fatal("there is no gate")
	}
	t.Cleanup(func() { _ = g.close() })
	return g
}

// still is a clock on which nobody's patience ends.
func still() clock.Clock {
	clk := clocktest.New(0)
	clk.SetRate(0)
	return clk
}

// Those in line pass in the order in which they came, and one who comes again gets in line behind them.
func TestGateKeepsOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gate")
	const n = 20
	clk := still()
	var gates []*gate
	for range n {
		gates = append(gates, testGate(t, path))
	}
	var mu sync.Mutex
	var order []int
	var group sync.WaitGroup
	pass := func(i int, leave func()) {
		mu.Lock()
		order = append(order, i)
		mu.Unlock()
		leave()
	}
	first := gates[0].enter(clk)
	for i := 1; i < n; i++ {
		group.Go(func() { pass(i, gates[i].enter(clk)) })
		for drawn(t, gates[0]) != uint64(i+1) {
			time.Sleep(100 * time.Microsecond)
		}
	}
	pass(0, first)
	pass(n, gates[0].enter(clk))
	group.Wait()
	for i, got := range order {
		if got != i {
			t.Fatalf("passed in the order %v", order)
		}
	}
}

// Who is on its own draws no numbers. It stands in line again, behind the others, as soon as there are any.
func TestGateOfOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gate")
	g, other := testGate(t, path), testGate(t, path)
	clk := still()
	for range 5 {
		g.enter(clk)()
	}
	if got := drawn(t, g); got != 1 {
		t.Fatalf("%d numbers were drawn by one who is on its own", got)
	}
	leave := other.enter(clk)
	passed := make(chan func(), 1)
	go func() { passed <- g.enter(clk) }()
	for drawn(t, other) != 3 {
		time.Sleep(100 * time.Microsecond)
	}
	select {
	case <-passed:
		t.Error("it passed one who came before it")
	case <-time.After(50 * time.Millisecond): // in which nothing must happen
	}
	leave()
	(<-passed)()
}

// Whoever stands in line behind a process that doesn't move passes it, at once when it comes again.
func TestGateIsNoTrap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gate")
	stopped, g, third := testGate(t, path), testGate(t, path), testGate(t, path)
	goOn := stopped.enter(clock.System())
	g.enter(clock.System())()
	if g.stuck == nil {
		t.Fatal("there was no wait")
	}
	g.enter(clock.System())()
	third.enter(clock.System())() // its front has gone
	if third.stuck != nil {
		t.Error("the line behind didn't move")
	}
	goOn()
	<-g.stuck
	leave := g.enter(clock.System())
	if g.stuck != nil {
		t.Error("the gate isn't used again")
	}
	leave()
}

// The line of a process that died moves on.
func TestGateOfTheDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gate")
	dead, g := testGate(t, path), testGate(t, path)
	dead.enter(clock.System())
	if err := dead.close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	g.enter(clock.System())()
	if g.stuck != nil {
		t.Error("waited")
	}
}

// A lane whose writes were done in the turn of the other one keeps nobody waiting who is in line behind it.
func TestGateIsLeftWithNothingToWrite(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	other := openGate(filepath.Join(path+wakeSuffix, "terms.gate"))
	defer func() { _ = other.close() }()
	other.enter(s.clock)() // so that s draws a number, which is not free any more
	s.serveBatch(&s.terms)
	number, err := other.draw(s.clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.set(unix.F_OFD_SETLK, unix.F_WRLCK, firstByte+number-1); err != nil || number != 2 {
		t.Errorf("number %d, and the one in front of it: %v; want 2, and that it has left", number, err)
	}
}
