//go:build unix

package fencefile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencefile"
)

func seq(holder string, token fence.Token) fence.Sequencer {
	return fence.Sequencer{Name: "ledger", Holder: holder, Token: token}
}

// R1 is sent under term 1 and delayed; others write under terms 2 and 3; R1 arrives, and the file doesn't see it.
func TestDelayedWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	for name, write := range map[string]func(fence.Sequencer, string) error{
		"append": func(s fence.Sequencer, data string) error {
			return fencefile.New(path).Append(t.Context(), s, []byte(data))
		},
		"replace": func(s fence.Sequencer, data string) error {
			return fencefile.New(path).Replace(t.Context(), s, []byte(data))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, suffix := range []string{"", ".fence"} {
				if err := os.RemoveAll(path + suffix); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(write(seq("b", 2), "R2;"), write(seq("a", 3), "R3;")); err != nil {
				t.Fatal(err)
			}
			for _, late := range []fence.Sequencer{seq("a", 1), seq("b", 2), seq("b", 3), seq("a", 0)} {
				if err := write(late, "late;"); !errors.Is(err, fence.ErrStale) {
					t.Errorf("%+v: %v", late, err)
				}
			}
			if err := write(seq("a", 3), "R4;"); err != nil {
				t.Error(err)
			}
			want := map[string]string{"append": "R2;R3;R4;", "replace": "R4;"}[name]
			if b, err := os.ReadFile(path); err != nil || string(b) != want {
				t.Errorf("%q, %v; want %q", b, err, want)
			}
		})
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
	f := fencefile.New(path)
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
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for line := range strings.Lines(string(b)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || n < last {
			t.Errorf("%q after %d", line, last)
		}
		last = n
	}
	if lines := strings.Count(string(b), "\n"); lines != acknowledged || lines < 60 {
		t.Errorf("%d lines, %d acknowledged", lines, acknowledged)
	}
}

func TestDoneContextWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fencefile.New(path).Append(ctx, seq("a", 1), []byte("x")); !errors.Is(err, context.Canceled) {
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
	f := fencefile.New(filepath.Join(dir, "ledger"))
	old := fence.Sequencer{Name: "billing", Holder: "web-1", Token: 41} // Lease.Sequencer
	now := fence.Sequencer{Name: "billing", Holder: "web-2", Token: 42}
	fmt.Println(f.Append(context.Background(), now, []byte("charge 7\n")))
	fmt.Println(f.Append(context.Background(), old, []byte("charge 6\n")))
	// Output:
	// <nil>
	// billing: stale fencing token 41: web-2 has been here with token 42
}
