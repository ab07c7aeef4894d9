package resources

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencefile"
)

// files are guarded files of a folder, one for each name.
type files struct{ dir string }

func (f files) path(name string) string {
	return filepath.Join(f.dir, hex.EncodeToString([]byte(name)))
}

func (f files) Log(_ context.Context, name string) (lines []string, err error) {
	text, err := os.ReadFile(f.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		// A line that a kill cut off was not acknowledged.
		if whole, ok := strings.CutSuffix(line, "\n"); ok {
			lines = append(lines, whole)
		}
	}
	return lines, err
}

func (files) Close() error { return nil }

// appended are files that are added to.
type appended struct{ files }

func openAppended(_ context.Context, dir string) (Resource, error) { return appended{files{dir}}, nil }

func (f appended) Write(ctx context.Context, s fence.Sequencer, line string) error {
	return fencefile.New(f.path(s.Name), s.Name).Append(ctx, s, []byte(line+"\n"))
}

// replaced are files that are written anew.
type replaced struct{ files }

func openReplaced(_ context.Context, dir string) (Resource, error) { return replaced{files{dir}}, nil }

func (f replaced) Write(ctx context.Context, s fence.Sequencer, line string) error {
	before, err := os.ReadFile(f.path(s.Name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return fencefile.New(f.path(s.Name), s.Name).Replace(ctx, s, append(before, line+"\n"...))
}
