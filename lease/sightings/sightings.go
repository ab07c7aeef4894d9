package sightings

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

const (
	format   = 1
	maxBytes = 16 << 10 // of a file
	suffix   = ".json"
)

// MaxKept bounds how many sightings a folder, and a [Book], keeps. The one that was written longest
// ago gives way.
const MaxKept = 1024

// Book is the sightings of one store, in one folder. A nil *Book knows nothing and keeps nothing.
// It is safe for concurrent use, and so is a folder by several processes.
type Book struct {
	dir, store string

	mu   sync.Mutex
	at   func() (string, error) // where and when a sighting counts
	seen map[string]*sighting   // by key
}

// sighting is what is known of one record; without an Owner, nothing.
type sighting struct {
	store.Record
	since clock.Instant
	saved bool // the folder has it
}

// kept is a sighting as it is in a file.
type kept struct {
	Format  int           `json:"v"`
	At      string        `json:"at"`
	Store   string        `json:"store"`
	Key     string        `json:"key"`
	Owner   string        `json:"owner"`
	Token   fence.Token   `json:"token"`
	TTL     time.Duration `json:"ttl_ns"`
	Session string        `json:"session,omitempty"`
	Nonce   string        `json:"nonce"`
	Since   clock.Instant `json:"since_ns"`
}

// New returns the book of a store, in dir. store identifies the store, as its URL does; the folder
// has only a hash of it. New does no I/O: the first [Book.Save] creates a missing folder.
func New(dir, store string) *Book {
	return &Book{dir: dir, store: hash(store), at: sync.OnceValues(boot), seen: map[string]*sighting{}}
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Recall returns what this process or an earlier one saw of a record: the fields that identify a
// write, and since when the record is known to be as that write left it. The record has no version:
// read it before you conclude anything from a sighting. Recall reads a file. It reports false when
// nothing certain is known; a time after now is nothing certain.
func (b *Book) Recall(key string, now clock.Instant) (rec store.Record, since clock.Instant, known bool) {
	if b == nil {
		return store.Record{}, 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.seen[key]
	if s == nil {
		s = b.load(key)
		if s == nil || len(b.seen) >= MaxKept {
			return store.Record{}, 0, false
		}
		b.seen[key] = s
	}
	if s.Owner == "" || s.since > now {
		return store.Record{}, 0, false
	}
	return s.Record, s.since, true
}

// Note remembers that rec, which was read, has been as its holder left it since then, on the
// system's clock. It forgets a record that is free, or that an engine vouches is abandoned. It does
// no I/O.
func (b *Book) Note(rec store.Record, since clock.Instant) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.seen[rec.Key]
	if before == nil && len(b.seen) >= MaxKept {
		return
	}
	s := &sighting{since: since}
	// Without a nonce, a version alone may be another store's.
	if rec.Owner != "" && rec.Nonce != "" && since != clock.Ended {
		s.Record = store.Record{
			Key: rec.Key, Owner: rec.Owner, Token: rec.Token, TTL: rec.TTL, Session: rec.Session, Nonce: rec.Nonce,
		}
	}
	s.saved = before != nil && before.saved && before.since == s.since && before.Nonce == s.Nonce
	b.seen[rec.Key] = s
}

// Forget forgets a name, for instance one that this process holds. It does no I/O.
func (b *Book) Forget(key string) { b.Note(store.Record{Key: key}, 0) }

// Save writes what was noted to the folder, and creates a missing folder. It replaces each file in
// one step, and removes files that nobody needs any more. The error says why the folder can't be
// used: then the next process knows nothing of this one's sightings.
func (b *Book) Save() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for key, s := range b.seen {
		switch {
		case s.saved:
			continue
		case s.Owner == "":
			if err := os.Remove(b.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		default:
			if err := b.write(key, s); err != nil {
				return errors.Join(append(errs, err)...) // nor would the others
			}
		}
		s.saved = true
	}
	return errors.Join(errs...)
}

func (b *Book) path(key string) string { return filepath.Join(b.dir, hash(b.store, key)+suffix) }

// load reads the file of a sighting, or returns nil. b.mu is held.
func (b *Book) load(key string) *sighting {
	at, err := b.at()
	if err != nil || checkDir(b.dir) != nil {
		return nil
	}
	text, err := readFile(b.path(key))
	if err != nil {
		return nil
	}
	var k kept
	if json.Unmarshal(text, &k) != nil || k.Format != format || k.At != at || k.Store != b.store || k.Key != key ||
		k.Owner == "" || k.Nonce == "" || k.TTL <= 0 || k.Since < 0 {
		return nil
	}
	rec := store.Record{Key: k.Key, Owner: k.Owner, Token: k.Token, TTL: k.TTL, Session: k.Session, Nonce: k.Nonce}
	return &sighting{Record: rec, since: k.Since, saved: true}
}

// write replaces the file of a sighting. b.mu is held.
func (b *Book) write(key string, s *sighting) error {
	at, err := b.at()
	if err != nil {
		return err
	}
	if b.dir == "" {
		return errors.New("no folder is set for sightings")
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	if err := checkDir(b.dir); err != nil {
		return err
	}
	path := b.path(key)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := b.makeRoom(); err != nil {
			return err
		}
	}
	text, err := json.Marshal(kept{
		Format: format, At: at, Store: b.store, Key: key, Owner: s.Owner, Token: s.Token, TTL: s.TTL, Session: s.Session,
		Nonce: s.Nonce, Since: s.since,
	})
	if err != nil {
		return err
	}
	return replace(path, text)
}

// replace writes a file of mode 0600 in one step. It isn't synced: a loss of power makes every
// sighting worthless.
func replace(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// makeRoom removes the oldest files where there are too many: sightings, and what a process that
// was killed left half written.
func (b *Book) makeRoom() error {
	entries, err := os.ReadDir(b.dir)
	if err != nil || len(entries) < MaxKept {
		return err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		// Another process may have removed it.
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(x, y fs.FileInfo) int { return x.ModTime().Compare(y.ModTime()) })
	for _, f := range files[:max(0, len(files)-MaxKept+1)] {
		if err := os.Remove(filepath.Join(b.dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
