package fence_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencetest"
	"github.com/leasehold/leasehold/fence/filemarks"
)

func TestStoryOnline(t *testing.T) {
	for name, maxAge := range map[string]time.Duration{"asked each time": 0, "cached": time.Hour} {
		t.Run(name, func(t *testing.T) {
			src := &fence.Book{}
			var guard fence.Guard
			reopen := func() {
				var err error
				if guard, err = fence.NewOnline(src, fence.OnlineOptions{MaxAge: maxAge}); err != nil {
					t.Fatal(err)
				}
			}
			reopen()
			fencetest.Story(t, func(ctx context.Context, s fence.Sequencer) error { return guard.Check(ctx, s) },
				fencetest.Options{
					Begin:  func(s fence.Sequencer) { src.Set(s.Name, s.Holder, s.Token) },
					Reopen: reopen,
				})
		})
	}
}

// log is a resource that takes down under which tokens it was written, in the guard's Do or after its Check.
type log struct {
	mu     sync.Mutex
	guard  *fence.Offline
	tokens []fence.Token
}

func (l *log) do(ctx context.Context, s fence.Sequencer) error {
	return fence.Do(ctx, l.guard, s, func(context.Context) error {
		l.add(s.Token)
		return nil
	})
}

func (l *log) check(ctx context.Context, s fence.Sequencer) error {
	err := l.guard.Check(ctx, s)
	if err == nil {
		l.add(s.Token)
	}
	return err
}

func (l *log) add(token fence.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens = append(l.tokens, token)
}

func (l *log) written() []fence.Token {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]fence.Token(nil), l.tokens...)
}

func TestStoryOffline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	var file *filemarks.Marks
	inMemory := &fence.MemoryMarks{}
	for name, marks := range map[string]func() fence.Marks{
		"in memory": func() fence.Marks { return inMemory },
		"in a file": func() fence.Marks {
			if file != nil {
				if err := file.Close(); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if file, err = filemarks.Open(path); err != nil {
				t.Fatal(err)
			}
			return file
		},
	} {
		l := &log{}
		reopen := func() {
			var err error
			if l.guard, err = fence.NewOffline(marks()); err != nil {
				t.Fatal(err)
			}
		}
		told := func(how string, write fencetest.Write) {
			t.Run(name+", "+how, func(t *testing.T) {
				l.tokens = nil
				reopen()
				fencetest.Story(t, write, fencetest.Options{Reopen: reopen, Written: l.written})
			})
		}
		told("Check", l.check)
		told("Do", l.do)
		t.Run(name+", race", func(t *testing.T) {
			l.tokens = nil
			fencetest.Race(t, l.do, l.written)
		})
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
