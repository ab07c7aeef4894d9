package admiral

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Addresses is where an allocator keeps the addresses that it has given out: one text, changed by
// compare-and-swap on its version. A ConfigMap is one; see compat/admiral/configmap.
type Addresses interface {
	// Load returns the text and its version. A text that isn't stored is "", with a version that
	// creates it.
	Load(ctx context.Context) (text, version string, err error)
	// Save replaces the text if version is still the stored one; if not, its error matches
	// [ErrChanged] and nothing was changed.
	Save(ctx context.Context, text, version string) error
}

// Where the addresses are kept, how many there are with one prefix, and what a ConfigMap takes.
const (
	AddressKey = "serviceEntryAddressStore" // of the ConfigMap that has them

	lowThird     = 10
	fourths      = 255
	MaxAddresses = (255 - lowThird + 1) * fourths
	maxText      = 1 << 20
)

// tries is how often an allocation is tried when others change the addresses at the same time.
const tries = 3

// addressStore is the text: Admiral's YAML.
type addressStore struct {
	Entries   map[string]string `yaml:"entry-addresses,omitempty"`
	Addresses []string          `yaml:"addresses,omitempty"`
}

// Allocator hands out service addresses with one prefix, one for each name, and never one twice. It
// is safe for concurrent use, by any number of instances on the same [Addresses].
type Allocator struct {
	store  Addresses
	prefix string
}

// NewAllocator returns an allocator of addresses with that prefix, which has to be the deployment's
// own; see [ClaimPrefix].
func NewAllocator(st Addresses, prefix string) (*Allocator, error) {
	if st == nil {
		return nil, errors.New("admiral: NewAllocator needs a place to keep the addresses")
	}
	if err := CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if prefix == AutoPrefix {
		return nil, fmt.Errorf("se_ip_prefix %s: want the prefix that ClaimPrefix returned", AutoPrefix)
	}
	return &Allocator{st, prefix}, nil
}

// Address returns the address of name: the one that it has, or one that was free. It stores the
// address before it returns, on the third try at the latest. If all three tries met changes of
// others, the error matches [ErrChanged]. It matches [ErrFull] when all [MaxAddresses] are given
// out, or the text has grown over 1 MiB, which is all that a ConfigMap takes.
//
// After any error no address was returned. If the write has happened all the same, a later call
// returns that address.
func (a *Allocator) Address(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", errors.New("a service address needs the name of the service")
	}
	for range tries {
		address, err := a.try(ctx, name)
		if !errors.Is(err, ErrChanged) {
			return address, err
		}
	}
	return "", fmt.Errorf("address of %q: %d tries: %w", name, tries, ErrChanged)
}

func (a *Allocator) try(ctx context.Context, name string) (string, error) {
	text, version, err := a.store.Load(ctx)
	if err != nil {
		return "", fmt.Errorf("address of %q: %w", name, err)
	}
	all, err := parseAddresses(text)
	if err != nil {
		return "", err
	}
	if address, ok := all.Entries[name]; ok {
		return address, nil
	}
	address, err := all.free(a.prefix)
	if err != nil {
		return "", fmt.Errorf("address of %q: %w", name, err)
	}
	all.Entries[name] = address
	all.Addresses = append(all.Addresses, address)
	out, err := all.text()
	switch {
	case err != nil:
		return "", err
	case len(out) > maxText:
		return "", fmt.Errorf("address of %q: %w: the %d addresses would take %d bytes, and a ConfigMap at most %d", name, ErrFull, len(all.Addresses), len(out), maxText)
	}
	if err := a.store.Save(ctx, out, version); err != nil {
		return "", fmt.Errorf("address of %q: %w", name, err)
	}
	return address, nil
}

// parseAddresses reads the text. An address that two names have is an error: what was handed
// out twice is nothing to go on from.
func parseAddresses(text string) (addressStore, error) {
	var all addressStore
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		return all, fmt.Errorf("%s can't be read: %w", AddressKey, err)
	}
	if all.Entries == nil {
		all.Entries = map[string]string{}
	}
	owner := make(map[string]string, len(all.Entries))
	for name, address := range all.Entries {
		if other, twice := owner[address]; twice {
			names := []string{name, other}
			slices.Sort(names)
			return all, fmt.Errorf("%s: entry-addresses: %s belongs to both %q and %q: give one of them another", AddressKey, address, names[0], names[1])
		}
		owner[address] = name
	}
	listed := make(map[string]bool, len(all.Addresses))
	for _, address := range all.Addresses {
		listed[address] = true
	}
	for address := range owner {
		if !listed[address] {
			// Lost by an edit: it is taken all the same.
			all.Addresses = append(all.Addresses, address)
		}
	}
	return all, nil
}

// text is the form that Admiral writes.
func (s addressStore) text() (string, error) {
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	err := errors.Join(enc.Encode(s), enc.Close())
	return b.String(), err
}

// free returns the address at the place that follows from how many there are, or the next one that
// is not taken. From the last it goes on with the first.
func (s addressStore) free(prefix string) (string, error) {
	taken := make(map[string]bool, len(s.Addresses))
	for _, address := range s.Addresses {
		taken[address] = true
	}
	for n := range MaxAddresses {
		n = (len(s.Addresses) + n) % MaxAddresses
		if address := fmt.Sprintf("%s.%d.%d", prefix, n/fourths+lowThird, n%fourths+1); !taken[address] {
			return address, nil
		}
	}
	return "", fmt.Errorf("%w: all %d with the prefix %s are taken", ErrFull, MaxAddresses, prefix)
}
