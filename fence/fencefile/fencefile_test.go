//go:build unix

package fencefile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencefile"
	"github.com/leasehold/leasehold/fence/fencetest"
)

func seq(holder string, token fence.Token) fence.Sequencer {
	return fence.Sequencer{Name: "ledger", Holder: holder, Token: token}
}

// A guarded file keeps nothing in memory, so every write is one after a restart.
func TestStory(t *testing.T) {
	t.Run("append", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		write := func(ctx context.Context, s fence.Sequencer) error {
			return fencefile.New(path, t.Name()).Append(ctx, s, []byte(s.Token.String()+"\n"))
		}
		fencetest.Story(t, write, fencetest.Options{Written: func() []fence.Token { return tokens(t, path) }})
	})
	t.Run("replace", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		write := func(ctx context.Context, s fence.Sequencer) error {
			old, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return fencefile.New(path, t.Name()).Replace(ctx, s, append(old, s.Token.String()+"\n"...))
		}
		fencetest.Story(t, write, fencetest.Options{Written: func() []fence.Token { return tokens(t, path) }})
	})
}

func TestRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	f := fencefile.New(path, t.Name())
	fencetest.Race(t, func(ctx context.Context, s fence.Sequencer) error {
		return f.Append(ctx, s, []byte(s.Token.String()+"\n"))
	}, func() []fence.Token { return tokens(t, path) })
}

// tokens reads what was written.
func tokens(t *testing.T, path string) (all []fence.Token) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		token, err := fence.ParseToken(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, token)
	}
	return all
}

// Whoever holds another lease has no say, however high its token is.
func TestOtherLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	f := fencefile.New(path, "ledger")
	other := fence.Sequencer{Name: "ledgers", Holder: "a", Token: 9}
	if err := f.Append(t.Context(), other, nil); !errors.Is(err, fence.ErrOtherName) {
		t.Errorf("append: %v", err)
	}
	if err := f.Replace(t.Context(), other, nil); !errors.Is(err, fence.ErrOtherName) {
		t.Errorf("replace: %v", err)
	}
	if err := f.Append(t.Context(), seq("a", 1), []byte("1\n")); err != nil {
		t.Error(err)
	}
}

// writerEnv makes the test binary a writer of another process.
const writerEnv = "LEASEHOLD_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		write(path, os.Args[1])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// write tries 60 tokens, not all of which can be admitted, and prints those that were.
func write(path, holder string) {
	f := fencefile.New(path, "ledger")
	for i := 1; i <= 60; i++ {
		token := fence.Token(i*10) + fence.Token(holder[0]-'a')
		if err := f.Append(context.Background(), seq(holder, token), []byte(token.String()+"\n")); err == nil {
			fmt.Println(token)
		} else if !errors.Is(err, fence.ErrStale) {
			fmt.Println("failed:", err)
		}
	}
}

// Whatever processes write at the same time: the file has what was acknowledged, and all of it in the order of the tokens.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	acknowledged := 0
	var wg sync.WaitGroup
	for _, holder := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), exe, holder)
			cmd.Env = append(os.Environ(), writerEnv+"="+path)
			out, err := cmd.Output()
			if err != nil || strings.Contains(string(out), "failed") {
				t.Errorf("%s: %v\n%s", holder, err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			acknowledged += strings.Count(string(out), "\n")
		})
	}
	wg.Wait()
	written := tokens(t, path)
	if !slices.IsSorted(written) {
		t.Errorf("not in the order of the tokens: %v", written)
	}
	if len(written) != acknowledged || acknowledged < 60 {
		t.Errorf("%d lines, %d acknowledged", len(written), acknowledged)
	}
}

func TestDoneContextWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fencefile.New(path, "ledger").Append(ctx, seq("a", 1), []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func ExampleFile_Append() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f := fencefile.New(filepath.Join(dir, "ledger"), "billing")
	old := fence.Sequencer{Name: "billing", Holder: "web-1", Token: 41} // Lease.Sequencer
	now := fence.Sequencer{Name: "billing", Holder: "web-2", Token: 42}
	fmt.Println(f.Append(context.Background(), now, []byte("charge 7\n")))
	fmt.Println(f.Append(context.Background(), old, []byte("charge 6\n")))
	// Output:
	// <nil>
	// billing: stale fencing token 41: web-2 has token 42
}
