package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// families is what the processes under `leasehold run` have told: when those of each term lived. It
// is not safe for concurrent use.
type families struct {
	terms map[string]map[fence.Token]*life // by name
	read  map[string]int64                 // by file: how much of it
}

// life is from when until when processes of one term told that they live.
type life struct {
	holder      string
	first, last clock.Instant
}

func newFamilies() *families {
	return &families{terms: map[string]map[fence.Token]*life{}, read: map[string]int64{}}
}

// follow reads what was told since the last time of the family of a name, in a file.
func (f *families) follow(name, path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(f.read[path], io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil // the rest of the line comes with the next look
		}
		f.read[path] += int64(len(line))
		if err := f.take(name, line); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

// take adds one line.
func (f *families) take(name, line string) error {
	var token fence.Token
	var at clock.Instant
	var letter, holder string
	if _, err := fmt.Sscanf(line, "%d %d %s %s", &token, &at, &letter, &holder); err != nil {
		return fmt.Errorf("line %q: %w", line, err)
	}
	if f.terms[name] == nil {
		f.terms[name] = map[fence.Token]*life{}
	}
	l := f.terms[name][token]
	if l == nil {
		l = &life{holder, at, at}
		f.terms[name][token] = l
	}
	if l.holder != holder {
		return fmt.Errorf("token %d was given out twice: to %s and to %s", token, l.holder, holder)
	}
	l.first, l.last = min(l.first, at), max(l.last, at)
	return nil
}

// beside is a time in which a family lived on beside that of a later term.
type beside struct {
	name       string
	old, token fence.Token
	from, to   clock.Instant
}

func (b beside) String() string {
	return fmt.Sprintf("%s: what ran under token %d lived on for %v beside token %d", b.name, b.old, b.to.Sub(b.from), b.token)
}

// overlaps returns the times in which processes of an earlier term lived beside those of a later
// one.
func (f *families) overlaps() (all []beside) {
	for name, terms := range f.terms {
		var tokens []fence.Token
		for token := range terms {
			tokens = append(tokens, token)
		}
		slices.Sort(tokens)
		var longest fence.Token // of those before, the one that lived longest
		for _, token := range tokens {
			if before := terms[longest]; before != nil && before.last > terms[token].first {
				all = append(all, beside{name, longest, token, terms[token].first, before.last})
			}
			if longest == 0 || terms[token].last > terms[longest].last {
				longest = token
			}
		}
	}
	slices.SortFunc(all, func(a, b beside) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// count is how many terms there were.
func (f *families) count() (n int) {
	for _, terms := range f.terms {
		n += len(terms)
	}
	return n
}

// stalled returns for how long the machine stood still, as its witness saw it, in the time before
// an overlap in which it can have caused that.
func stalled(stalls []window, b beside, ttl time.Duration) (sum time.Duration) {
	for _, w := range stalls {
		sum += max(min(w.to, b.to).Sub(max(w.from, b.from.Add(-ttl))), 0)
	}
	return sum
}
