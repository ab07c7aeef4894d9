package resources

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// book is a source that knows the terms that it is told of.
type book struct {
	mu    sync.Mutex
	terms map[string]fence.Holding
}

func (b *book) begin(s fence.Sequencer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.terms[s.Name] = fence.Holding{Holder: s.Holder, Token: s.Token}
}

func (b *book) Current(_ context.Context, name string) (fence.Holding, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.terms[name], nil
}

func start(t *testing.T, source fence.Source) *Host {
	t.Helper()
	var names []string
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	h, err := Start(t.Context(), t.TempDir(), names, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if len(h.Missing) > 0 && os.Getenv("LEASEHOLD_TEST_REQUIRE") != "" {
		t.Fatalf("not installed: %v", h.Missing)
	}
	return h
}

// Each resource of the soak is guarded, and its log is in order. Without guards it takes anything.
func TestEveryKind(t *testing.T) {
	b := &book{terms: map[string]fence.Holding{}}
	h := start(t, b)
	for kind, address := range h.Addresses {
		t.Run(kind, func(t *testing.T) {
			r, err := Open(t.Context(), kind, address)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			n := 0
			fencetest.Story(t, func(ctx context.Context, s fence.Sequencer) error {
				n++
				return r.Write(ctx, s, fmt.Sprintf("%d %d", s.Token, n))
			}, fencetest.Options{Begin: b.begin, Written: func() (tokens []fence.Token) {
				lines, err := h.Log(t.Context(), kind, t.Name())
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range lines {
					var token fence.Token
					if _, err := fmt.Sscan(line, &token); err != nil {
						t.Fatal(err)
					}
					tokens = append(tokens, token)
				}
				return tokens
			}})
		})
	}
}

func TestUnguarded(t *testing.T) {
	h, err := Start(t.Context(), t.TempDir(), []string{"http-online", "http-offline", "grpc"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for kind := range h.Addresses {
		for _, token := range []fence.Token{2, 1} {
			if err := h.resources[kind].Write(t.Context(), fence.Sequencer{Name: "n", Holder: "a", Token: token}, token.String()); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if lines, err := h.Log(t.Context(), kind, "n"); err != nil || !slices.Equal(lines, []string{"2", "1"}) {
			t.Errorf("%s: %q, %v", kind, lines, err)
		}
	}
}
