package archtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
)

// MaxDoc is how many lines `go doc` may print of a public package. Two screens have so many, and a
// user who chooses a package reads no more.
const MaxDoc = 100

// LongDocs runs `go doc` on each public package of the workspace in folder. It returns those that
// it prints more than [MaxDoc] lines of, sorted, and how many packages there are. The error names
// the package that `go doc` failed on.
func LongDocs(ctx context.Context, folder string) (long []Problem, packages int, err error) {
	t, err := read(os.DirFS(folder))
	if err != nil {
		return nil, 0, err
	}
	var dirs []string
	for i := range t.files {
		if f := &t.files[i]; !f.test && public(f) && !slices.Contains(dirs, f.dir) {
			dirs = append(dirs, f.dir)
		}
	}
	slices.Sort(dirs)
	lines, failed := make([]int, len(dirs)), make([]error, len(dirs))
	var running sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, dir := range dirs {
		running.Go(func() {
			slots <- struct{}{}
			lines[i], failed[i] = DocLines(ctx, folder, dir)
			<-slots
		})
	}
	running.Wait()
	j := &judge{}
	for i, dir := range dirs {
		if lines[i] > MaxDoc {
			j.report(dir, 0, "go doc prints %d lines, of %d at most: keep in the package comment what a user decides by, "+
				"move formats and protocols to a page of docs/ or beside the code, "+
				"and declare constants and errors that belong together in one block", lines[i], MaxDoc)
		}
	}
	return j.found, len(dirs), errors.Join(failed...)
}

// DocLines returns how many lines `go doc` prints of the package in dir, below folder.
func DocLines(ctx context.Context, folder, dir string) (int, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "doc", "./"+dir)
	cmd.Dir, cmd.Stderr = folder, &stderr
	text, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: go doc: %w\n%s", dir, err, &stderr)
	}
	return bytes.Count(text, []byte("\n")), nil
}
