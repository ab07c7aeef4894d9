package servers

import (
	"errors"
	"net"
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
