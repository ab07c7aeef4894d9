// Package open opens a store by its URL. Only this package knows all engines.
package open

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// Scheme is one kind of store.
type Scheme struct {
	Name string // before the colon
	Form string // what a URL of this scheme looks like; human-readable
	Doc  string // the store in a few words

	parse func(rest string) (string, error) // what follows the colon, made complete
	open  func(ctx context.Context, rest string, opts Options) (store.Store, error)
}

// Schemes returns every kind of store that this program knows.
func Schemes() []Scheme {
	return append([]Scheme{
		{
			Name: "file", Form: "file:PATH", Doc: "one file, shared by all processes of this machine",
			parse: parseFile, open: openFile,
		},
		{
			Name: "memory", Form: "memory:", Doc: "in this process only, gone with it: for trials",
			parse: nothing, open: func(context.Context, string, Options) (store.Store, error) { return memory.New(memory.Options{}), nil },
		},
	}, atServers()...)
}

// URL is a store's URL, checked and complete: a relative path in it has become absolute.
type URL struct {
	Scheme Scheme
	Rest   string // after the colon
}

// String returns the whole URL, with its passwords, for programs. [Redact] returns a URL for
// people.
func (u URL) String() string { return u.Scheme.Name + ":" + u.Rest }

// Parse reads a store's URL. It does no I/O. Its errors say what is wrong and list the known
// schemes.
func Parse(url string) (URL, error) {
	name, rest, ok := strings.Cut(url, ":")
	if !ok || len(name) < 2 || strings.ContainsAny(name, `/\`) { // C:\… is a path, too
		if url == "" {
			return URL{}, fmt.Errorf(`store "": want %s`, forms())
		}
		if slices.ContainsFunc(Schemes(), func(s Scheme) bool { return s.Name == url }) {
			return URL{}, fmt.Errorf("store %q: it has no colon: write %s", url, meant(url))
		}
		return URL{}, fmt.Errorf("store %q: it has no scheme: for a file write file:%s; known are %s", url, url, forms())
	}
	for _, s := range Schemes() {
		if s.Name == name {
			rest, err := s.parse(rest)
			if err != nil {
				return URL{}, fmt.Errorf("store %q: %w", Redact(url), mended(url, err))
			}
			return URL{Scheme: s, Rest: rest}, nil
		}
	}
	if what := absent[name]; what != "" {
		return URL{}, fmt.Errorf("store %q: this is leasehold-lite, which has no %s: install the full program, leasehold; known here are %s", Redact(url), what, forms())
	}
	if lower := strings.ToLower(name); lower != name && meant(lower) != "" {
		return URL{}, fmt.Errorf("store %q: unknown scheme %q: write %s in lower case: %s", Redact(url), name, lower, meant(lower))
	}
	if port, _, _ := strings.Cut(rest, "/"); isPort(port) {
		return URL{}, fmt.Errorf("store %q: it has no scheme: write %s", Redact(url), ofPort(port)+"://"+url)
	}
	return URL{}, fmt.Errorf("store %q: unknown scheme %q: known are %s", Redact(url), name, forms())
}

// forms lists the schemes for an error.
func forms() string {
	var list []string
	for _, s := range Schemes() {
		form := s.Form
		if strings.HasPrefix(form, s.Name+"://") {
			form = s.Name + "://…"
		}
		list = append(list, form)
	}
	return strings.Join(list, ", ")
}

// Options are the settings of [URL.Open].
type Options struct {
	CreateDir bool // make the folder of a file where it is missing
	MustExist bool // a store that doesn't exist is an error; otherwise Open creates it

	// Log is the logger for files with a certificate or a secret. The store logs a line for each
	// such file that was replaced and can't be read. Log may be nil.
	Log *slog.Logger
}

func (o Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// Open opens the store. It blocks as the engine's own Open does.
func (u URL) Open(ctx context.Context, opts Options) (store.Store, error) {
	st, err := u.Scheme.open(ctx, u.Rest, opts)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return st, nil
}

// Dir returns the folder of a store that keeps its data in one, or "".
func (u URL) Dir() string {
	if u.Scheme.Name != "file" {
		return ""
	}
	path, _, _ := splitFile(u.Rest)
	return filepath.Dir(path)
}

func nothing(rest string) (string, error) {
	if rest != "" {
		return "", fmt.Errorf("%q after the colon: want nothing there", rest)
	}
	return "", nil
}

// StateDir returns Leasehold's folder in the user's state directory. It returns an error if there
// is no home directory.
func StateDir() (string, error) { return stateDir(runtime.GOOS) }

// Default returns the URL of the store in the user's state directory. It returns an error if there
// is no home directory.
func Default() (string, error) {
	dir, err := StateDir()
	if err != nil {
		return "", fmt.Errorf("no place for the default store (%w): name one with --store file:PATH", err)
	}
	return "file:" + filepath.Join(dir, "leases.db"), nil
}

func stateDir(goos string) (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) && goos != "windows" {
		return filepath.Join(dir, "leasehold"), nil
	}
	if goos == "windows" {
		dir, err := os.UserCacheDir() // %LocalAppData%
		return filepath.Join(dir, "leasehold"), err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	if goos == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "leasehold"), nil
	}
	return filepath.Join(home, ".local", "state", "leasehold"), nil
}
