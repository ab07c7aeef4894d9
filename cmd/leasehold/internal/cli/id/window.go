package id

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/identity"
)

// idFiles are two files that this program and CMD share: what times CMD's ids may have, kept up to
// date, and where CMD writes which it has used.
type idFiles struct {
	dir    string
	window string // "FLOOR CEILING", in ms since 1970
	used   string // of CMD
	stop   context.CancelFunc
	writes sync.WaitGroup
}

// newIDFiles makes the files, and follows the hold's ceiling until they are closed.
func newIDFiles(h *identity.Hold, clk clock.Clock, every time.Duration, say func(format string, args ...any)) (*idFiles, error) {
	dir, err := os.MkdirTemp("", "leasehold-id-")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &idFiles{dir: dir, window: filepath.Join(dir, "window"), used: filepath.Join(dir, "used"), stop: stop}
	told, err := f.tell(h, time.Time{})
	if err == nil {
		err = os.WriteFile(f.used, nil, 0o600)
	}
	if err != nil {
		_ = f.close()
		return nil, err
	}
	f.writes.Go(func() { // close waits for it
		for clock.Sleep(ctx, clk, every) == nil {
			if told, err = f.tell(h, told); err != nil {
				say("%s: %s; CMD reads an old ceiling there", f.window, cli.OneLine(err))
				return
			}
		}
	})
	return f, nil
}

// tell writes the window if its ceiling isn't the one that was told last. Who reads meanwhile reads
// the one or the other.
func (f *idFiles) tell(h *identity.Hold, last time.Time) (time.Time, error) {
	ceiling := h.Ceiling()
	if ceiling.Equal(last) {
		return last, nil
	}
	floor, up := idBounds(h.Floor(), ceiling)
	next := f.window + ".next"
	err := os.WriteFile(next, []byte(floor+" "+up+"\n"), 0o600)
	if err == nil {
		err = os.Rename(next, f.window)
	}
	return ceiling, err
}

// idBounds returns a window in whole ms since 1970: none of it begins before, or ends later.
func idBounds(floor, ceiling time.Time) (from, to string) {
	if whole := floor.Truncate(time.Millisecond); whole.Before(floor) {
		floor = whole.Add(time.Millisecond)
	}
	ms := func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
	return ms(floor), ms(ceiling)
}

// maxUsed bounds what is read of what CMD wrote.
const maxUsed = 64

// report returns what CMD has written, the zero time if that is nothing.
func (f *idFiles) report() (time.Time, error) {
	file, err := os.Open(f.used)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	b, err := io.ReadAll(io.LimitReader(file, maxUsed))
	if err = errors.Join(err, file.Close()); err != nil {
		return time.Time{}, err
	}
	text := string(bytes.TrimSpace(b))
	if text == "" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}, fmt.Errorf("CMD wrote %.20q to $%s: want ms since 1970, such as 1795257194000", text, EnvUsed)
	}
	return time.UnixMilli(ms), nil
}

// close waits for the last write, and removes the files.
func (f *idFiles) close() error {
	f.stop()
	f.writes.Wait()
	return os.RemoveAll(f.dir)
}
