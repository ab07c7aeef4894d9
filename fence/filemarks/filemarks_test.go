package filemarks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/fence"
)

// What the file couldn't give back as it was is not saved, and doesn't get in the way of the other marks.
func TestFileSavesWhatItCanRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Save(t.Context(), "n", fence.Mark{Token: 5, Holder: "a"}); err != nil {
		t.Fatal(err)
	}
	for says, s := range map[string]fence.Sequencer{
		"token 9007199254740992": {Name: "n", Holder: "b", Token: fence.MaxToken + 1},
		"token 0":                {Name: "n", Holder: "b", Token: 0},
		`resource "\xff"`:        {Name: "\xff", Holder: "b", Token: 6},
		`holder "\xff"`:          {Name: "n", Holder: "\xff", Token: 6},
	} {
		if err := m.Save(t.Context(), s.Name, fence.Mark{Token: s.Token, Holder: s.Holder}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error that says %s", s, err, says)
		}
	}
	if err := m.Save(t.Context(), "n", fence.Mark{Token: fence.MaxToken, Holder: "é"}); err != nil {
		t.Errorf("after refusals: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err = Open(path); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got, _ := m.Load(t.Context(), "n"); got != (fence.Mark{Token: fence.MaxToken, Holder: "é"}) {
		t.Errorf("opened again: %+v", got)
	}
}

func TestFileSurvivesCrashes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	open := func() *Marks {
		t.Helper()
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := open()
	for i := range 2000 {
		if err := m.Save(t.Context(), fmt.Sprint(i%3), fence.Mark{Token: fence.Token(i + 1), Holder: "a\nb"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(t.Context(), "1", fence.Mark{Token: 9999, Holder: "a"}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("saved after Close: %v", err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Cut off anywhere in the last line.
	last := strings.LastIndex(strings.TrimSuffix(string(whole), "\n"), "\n") + 1
	for cut := last; cut < len(whole); cut += 7 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		m := open()
		for resource, want := range map[string]fence.Token{"0": 1999, "1": 1997, "2": 1998} {
			if got, _ := m.Load(t.Context(), resource); got.Token != want || got.Holder != "a\nb" {
				t.Errorf("cut at %d: %s is %+v", cut, resource, got)
			}
		}
		if err := m.Save(t.Context(), "1", fence.Mark{Token: 2000, Holder: "c"}); err != nil {
			t.Fatal(err)
		}
		m.Close()
		m = open()
		if got, _ := m.Load(t.Context(), "1"); got.Token != 2000 {
			t.Errorf("cut at %d, saved again: %+v", cut, got)
		}
		m.Close()
		if b, _ := os.ReadFile(path); len(b) > 1000 {
			t.Errorf("it has grown to %d bytes for 3 marks", len(b))
		}
	}
	if err := os.WriteFile(path, []byte("{\"resource\":\"0\",\"token\":1,\"holder\":\"a\"}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "line 2 is no mark") {
		t.Errorf("nonsense: %v", err)
	}
}
