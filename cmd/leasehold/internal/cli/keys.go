package cli

import (
	"bytes"
	"os"

	"github.com/leasehold/leasehold/fence"
)

// Keys returns the keys that sign sequencers, none if none are set. The file has one to a line;
// empty lines, and those that begin with #, are left out.
func (a *App) Keys() (*fence.Keys, error) {
	path := a.Values.Get("keys")
	if path == "" {
		return nil, nil //nolint:nilnil // no keys sign nothing, and guards take nil for that
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, Usage("--keys: %w", err)
	}
	var all [][]byte
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			all = append(all, line)
		}
	}
	keys, err := fence.NewKeys(all...)
	if err != nil {
		return nil, Usage("--keys %s: %w; one to a line, as `openssl rand -base64 32` makes them", path, err)
	}
	return keys, nil
}

// SequencerText returns a sequencer as CMD gets it: signed if there are keys.
func SequencerText(keys *fence.Keys, s fence.Sequencer) (string, error) {
	if keys == nil {
		return s.String(), nil
	}
	return keys.Sign(s)
}
