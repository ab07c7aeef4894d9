package admiral_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/compat/admiral"
)

// addresses keeps a text in memory, as a ConfigMap does.
type addresses struct {
	mu      sync.Mutex
	text    string
	version int
	changed int // so many saves meet the change of another
	err     error
}

func (a *addresses) Load(context.Context) (string, string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text, fmt.Sprint(a.version), nil
}

func (a *addresses) Save(_ context.Context, text, version string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changed > 0 {
		a.changed--
		a.version++
	}
	if version != fmt.Sprint(a.version) {
		return admiral.ErrChanged
	}
	if a.err != nil {
		return a.err
	}
	a.text, a.version = text, a.version+1
	return nil
}

func allocator(t *testing.T, st admiral.Addresses, prefix string) *admiral.Allocator {
	t.Helper()
	a, err := admiral.NewAllocator(st, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAddressesGolden: the text as Admiral writes it, and what follows from one that it wrote.
func TestAddressesGolden(t *testing.T) {
	st := &addresses{}
	a := allocator(t, st, "240.0")
	for _, c := range []struct{ name, want string }{
		{"e1.svc.mesh", "240.0.10.1"}, {"e2.svc.mesh", "240.0.10.2"}, {"e1.svc.mesh", "240.0.10.1"}, {"e3.svc.mesh", "240.0.10.3"},
	} {
		if got, err := a.Address(t.Context(), c.name); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
	golden, err := os.ReadFile("testdata/addresses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if st.text != string(golden) {
		t.Errorf("written:\n%s\nwant:\n%s", st.text, golden)
	}

	b, err := os.ReadFile("testdata/admiral.yaml")
	if err != nil {
		t.Fatal(err)
	}
	theirs := &addresses{text: string(b)}
	a = allocator(t, theirs, "240.0")
	for name, want := range map[string]string{"e2.a.mesh": "240.0.10.2", "e2.b.mesh": "240.0.10.3"} {
		if got, err := a.Address(t.Context(), name); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	// Two are handed out, a third was removed from the entries and is in the list still; the place of the third address is
	// taken, so the next one is had.
	if got, err := a.Address(t.Context(), "e2.new.mesh"); err != nil || got != "240.0.10.5" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestAddressesAtOnce: no two names get one address, whoever asks.
func TestAddressesAtOnce(t *testing.T) {
	st := &addresses{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[string]string{}
	for n := range 8 {
		wg.Go(func() {
			a := allocator(t, st, "240.7")
			for k := range 50 {
				name := fmt.Sprintf("s%d", (n*50+k)%300)
				address, err := a.Address(t.Context(), name)
				for errors.Is(err, admiral.ErrChanged) {
					address, err = a.Address(t.Context(), name)
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				if before, ok := got[name]; ok && before != address {
					t.Errorf("%s has %s and %s", name, before, address)
				}
				got[name] = address
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	whose := map[string]string{}
	for name, address := range got {
		if other, twice := whose[address]; twice {
			t.Errorf("%s belongs to %s and %s", address, name, other)
		}
		whose[address] = name
	}
}

func TestAddressTries(t *testing.T) {
	for changed, ok := range map[int]bool{0: true, 2: true, 3: false} {
		st := &addresses{changed: changed}
		_, err := allocator(t, st, "240.0").Address(t.Context(), "s")
		if ok != (err == nil) || !ok && !errors.Is(err, admiral.ErrChanged) {
			t.Errorf("%d changes of others: %v", changed, err)
		}
	}
	errSave := errors.New("forbidden")
	if _, err := allocator(t, &addresses{err: errSave}, "240.0").Address(t.Context(), "s"); !errors.Is(err, errSave) {
		t.Errorf("%v", err)
	}
}

// filled returns a text with n addresses from the first on.
func filled(prefix string, n int) string {
	var b strings.Builder
	b.WriteString("addresses:\n")
	for k := range n {
		fmt.Fprintf(&b, "- %s.%d.%d\n", prefix, k/255+10, k%255+1)
	}
	return b.String()
}

// TestAddressesAreBounded: the third octet doesn't overflow, what was freed is found, and full is an error.
func TestAddressesAreBounded(t *testing.T) {
	const prefix = "241.2" // short, so that all of them fit
	last := allocator(t, &addresses{text: filled(prefix, admiral.MaxAddresses-1)}, prefix)
	if got, err := last.Address(t.Context(), "s"); err != nil || got != "241.2.255.255" {
		t.Errorf("the last one: %s, %v", got, err)
	}
	all := filled(prefix, admiral.MaxAddresses)
	if _, err := allocator(t, &addresses{text: all}, prefix).Address(t.Context(), "s"); !errors.Is(err, admiral.ErrFull) || !strings.Contains(err.Error(), "62730") {
		t.Errorf("full: %v", err)
	}
	hole := strings.Replace(all, "- 241.2.10.7\n", "- 9.9.9.9\n", 1)
	if got, err := allocator(t, &addresses{text: hole}, prefix).Address(t.Context(), "s"); err != nil || got != "241.2.10.7" {
		t.Errorf("with a hole: %s, %v", got, err)
	}
	if _, err := allocator(t, &addresses{}, "240.0").Address(t.Context(), strings.Repeat("s", 1<<20)); !errors.Is(err, admiral.ErrFull) || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("over 1 MiB: %v", err)
	}
}

func TestAddressesThatCantBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"entry-addresses: [a]":                                 admiral.AddressKey,
		"entry-addresses:\n  a: 240.0.10.1\n  b: 240.0.10.1\n": `both "a" and "b"`,
	} {
		st := &addresses{text: text}
		if _, err := allocator(t, st, "240.0").Address(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), want) || st.text != text {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := allocator(t, &addresses{}, "240.0").Address(t.Context(), ""); err == nil {
		t.Error("an address without a name")
	}
	if _, err := admiral.NewAllocator(&addresses{}, "240"); err == nil {
		t.Error("a prefix of one octet")
	}
}
