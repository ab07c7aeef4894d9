package servers

import (
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

func TestReserveGivesAPortOnce(t *testing.T) {
	var all [200]port
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() {
			var err error
			if all[i], err = reserve(); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	seen := map[int]bool{}
	for _, p := range all {
		if p.lock == nil {
			continue
		}
		if seen[p.number] {
			t.Errorf("port %d was given twice", p.number)
		}
		seen[p.number] = true
		if l, err := net.Listen("tcp", p.addr()); err != nil {
			t.Errorf("a reserved port can't be listened on: %v", err)
		} else {
			l.Close()
		}
		p.release()
	}
}

// A child has all descriptors between its fork and its program's start.
func TestForksDontKeepPorts(t *testing.T) {
	var running sync.WaitGroup
	defer running.Wait()
	stop := make(chan struct{})
	defer close(stop)
	for range 2 {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = exec.Command("true").Run()
				}
			}
		})
	}
	for range 1000 {
		p, err := reserve()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", p.addr())
		if err != nil {
			t.Fatalf("a reserved port can't be listened on: %v", err)
		}
		l.Close()
		p.release()
	}
	n := Proxy(t, newEcho(t).addr)
	for range 500 {
		n.Refuse()
		if conn, err := net.Dial("tcp", n.Addr); err == nil {
			conn.Close()
			t.Fatal("a proxy that refuses connections took one")
		}
		n.Heal() // which fails the test where it can't listen
	}
}

func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Lock(name); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, %v, want ErrLocked", second, err)
	}
	first.Close()
	again, err := Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
