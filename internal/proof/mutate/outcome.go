package mutate

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// outcome is what came of a suite's tests with a mutant.
type outcome struct {
	Content string // of the suite
	Is      string
	By      string `json:",omitempty"` // the test that noticed; it is run first next time
}

const (
	alive  = "alive"
	killed = "killed"
	hung   = "hung"
)

// outcomes are those of a suite with the mutants of a target, by [Mutant.Key].
type outcomes map[string]outcome

// file is where the outcomes of a suite are kept.
func (c *Campaign) file(t Target, s Suite) string {
	return filepath.Join(c.Cache, strings.NewReplacer("/", "-", "|", "+").Replace(t.Dir+" by "+s.Dir)+".json")
}

func (c *Campaign) recall(t Target, s Suite) (outcomes, error) {
	all := outcomes{}
	text, err := os.ReadFile(c.file(t, s))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

func (c *Campaign) keep(t Target, s Suite, all outcomes) error {
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Cache, 0o755); err != nil {
		return err
	}
	return os.WriteFile(c.file(t, s), text, 0o644)
}

// survivors runs a suite with each of the mutants, and returns those that it doesn't notice.
func (c *Campaign) survivors(p prepared, t Target, s Suite, mutants []Mutant, r *Result) ([]Mutant, error) {
	known, err := c.recall(t, s)
	if err != nil {
		return nil, err
	}
	came := make([]outcome, len(mutants))
	todo := make(chan int)
	var group sync.WaitGroup
	for range c.Workers {
		group.Go(func() {
			for i := range todo {
				came[i] = c.try(p, mutants[i], known[mutants[i].Key()].By)
			}
		})
	}
	for i, m := range mutants {
		if i%200 == 199 {
			c.Log("%s: %d of %d", t.Dir, i+1, len(mutants))
		}
		if before := known[m.Key()]; before.Content == p.content {
			came[i] = before
			r.Kept++
			continue
		}
		todo <- i
	}
	close(todo)
	group.Wait()
	var left []Mutant
	for i, m := range mutants {
		switch came[i].Is {
		case alive:
			left = append(left, m)
		case hung:
			r.TimedOut++
		default:
			r.Killed++
		}
		came[i].Content = p.content
		known[m.Key()] = came[i]
	}
	return left, c.keep(t, s, known)
}
