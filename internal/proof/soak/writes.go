package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// write is one accepted write.
type write struct {
	token  fence.Token
	holder string
	seq    int
}

func parseWrite(line string) (w write, err error) {
	var at clock.Instant
	if _, err := fmt.Sscanf(line, "%d %s %d %d", &w.token, &w.holder, &w.seq, &at); err != nil {
		return w, fmt.Errorf("line %q of a guarded file: %w", line, err)
	}
	return w, nil
}

// readGuard returns all that a guarded file has accepted, in order. A last line that was cut off
// was not acknowledged.
func readGuard(path string) ([]write, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var all []write
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		w, err := parseWrite(line)
		if err != nil {
			return all, err
		}
		all = append(all, w)
	}
	return all, err
}
