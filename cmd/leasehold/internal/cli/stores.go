package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/leasehold/leasehold/internal/fileurl"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
)

// StoreURL is a store's URL, checked and complete.
type StoreURL struct {
	Scheme string // before the colon
	text   string
}

// String returns the whole URL, with its passwords, for programs.
func (u StoreURL) String() string { return u.text }

// OpenOptions are the settings of [Engines.Open].
type OpenOptions struct {
	MakeDir   bool // make the folder of a file where it is missing
	MustExist bool
	Log       *slog.Logger
}

// Engines are the stores that a program can open.
type Engines struct {
	Parse       func(text string) (StoreURL, error)
	Open        func(ctx context.Context, u StoreURL, opts OpenOptions) (store.Store, error)
	Unreachable func(err error) bool // whether an error of Open says that nobody answers there now
	Stores      func() []StoreKind
	Redact      func(text string) string // a URL without its secrets, for people
}

// StoreKind is one kind of store.
type StoreKind struct {
	Name string // before the colon of its URL
	Form string // of its URL, with [] around what may be left out
	Doc  string // in a few words
}

// Stores returns the kinds of stores of this program.
func Stores() []StoreKind { return engines.Stores() }

// engines are files alone until [Use] is called. So a command can begin on a file before the
// clients of servers are initialised, which cost more than all else: see package early.
var engines = Engines{
	Parse: parseFile, Open: openFile,
	Unreachable: func(error) bool { return false },
	Stores:      func() []StoreKind { return []StoreKind{{scheme, "file:PATH", "one file of this machine"}} },
	Redact:      func(string) string { return "…" }, // whether it is a file's is not known
}

// Use makes e the stores of this program.
func Use(e Engines) { engines = e }

const scheme = "file"

// NewStoreURL is for [Engines.Parse]: text is complete.
func NewStoreURL(scheme, text string) StoreURL { return StoreURL{scheme, text} }

// ParseStore reads a store's URL.
func ParseStore(text string) (StoreURL, error) { return engines.Parse(text) }

func parseFile(text string) (StoreURL, error) {
	rest, ok := strings.CutPrefix(text, scheme+":")
	if !ok {
		return StoreURL{}, fmt.Errorf("store %q: is no file", text)
	}
	rest, err := fileurl.Parse(rest)
	return StoreURL{scheme, scheme + ":" + rest}, err
}

func openFile(ctx context.Context, u StoreURL, opts OpenOptions) (store.Store, error) {
	t, err := fileurl.Read(strings.TrimPrefix(u.text, scheme+":"))
	if err != nil {
		return nil, err
	}
	var group *file.Group
	if t.Group != "" {
		id, err := t.GroupID()
		if err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
		group = &file.Group{ID: id, Mode: t.Mode}
	}
	if err := t.Missing(opts.MakeDir, opts.MustExist); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	st, err := file.Open(ctx, t.Path, file.Options{CreateDir: opts.MakeDir, Group: group})
	if err != nil {
		// A nil *file.Store would make a store that isn't nil.
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return st, nil
}

// defaultStore returns the URL of the store in the user's state directory.
func defaultStore() (string, error) {
	path, err := fileurl.Default()
	if err != nil {
		return "", err
	}
	return scheme + ":" + path, nil
}
