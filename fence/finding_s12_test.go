package fence

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A signature counts as a whole: no part of it, and nothing more than it, is one.
func TestFinding_S12_APartOfASignatureIsNone(t *testing.T) {
	keys, err := NewKeys([]byte("0123456789abcdef"), []byte("fedcba9876543210"))
	if err != nil {
		t.Fatal(err)
	}
	want := Sequencer{"db", "a", 7}
	for _, signer := range []*Keys{{keys.keys[:1]}, {keys.keys[1:]}} {
		text, err := signer.Sign(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := keys.Verify(text); err != nil || got != want {
			t.Fatalf("%v, %v", got, err)
		}
		begin := strings.LastIndex(text, ";") + 1
		for cut := begin; cut < len(text); cut++ {
			for what, forged := range map[string]string{
				"cut short":      text[:cut],
				"without a part": text[:cut] + text[cut+1:],
				"altered":        text[:cut] + flipped(text[cut]) + text[cut+1:],
				"longer":         text + text[begin:cut+1],
			} {
				if s, err := keys.Verify(forged); !errors.Is(err, ErrForged) && !errors.Is(err, ErrMalformed) || s != (Sequencer{}) {
					t.Errorf("%s: %s: %v, %v", what, forged, s, err)
				}
			}
		}
	}
}

func flipped(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

// slow is a source whose answer takes a while on both clocks.
type slow struct {
	book
	at   *instant
	took time.Duration
}

func (s *slow) Current(ctx context.Context, name string) (Holding, error) {
	c, err := s.book.Current(ctx, name)
	s.at.mono += s.took
	s.at.wall += s.took
	return c, err
}

// An answer is as old as its question: what it says was true then, and nobody knows for how much longer.
func TestFinding_S12_AnAnswerIsAsOldAsItsQuestion(t *testing.T) {
	var at instant
	src := &slow{at: &at, took: 900 * time.Millisecond}
	src.Set("n", "a", 5)
	o := online(t, src, time.Second)
	o.now = func() instant { return at }
	if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); err != nil {
		t.Fatal(err)
	}
	src.Set("n", "b", 6) // just after the source was read
	at.mono += 200 * time.Millisecond
	at.wall += 200 * time.Millisecond
	if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); !errors.Is(err, ErrStale) {
		t.Errorf("admitted 1.1 s after the next term began, with MaxAge 1 s: %v", err)
	}
}
