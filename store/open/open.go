// Package open opens a store by its URL. Only this package knows all engines.
package open

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/fileurl"
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

	// The port at which servers listen by default; "" if there is none.
	port string
	// Other names that people have for it, in lower case.
	alike []string
	// What people call it, and the build tag that leaves its file out: lite for a client that is
	// larger than the rest of the program, local for the other clients of servers. The tag is ""
	// if every build has it.
	called, tag string
	// silent reports whether an error of the client says that nobody answers. It may be nil.
	silent func(error) bool
}

// registered are the engines behind a server that this build has, by name.
var registered []Scheme

// register enters the scheme of an engine, which calls it in a file of its own.
func register(s Scheme) Scheme {
	at, _ := slices.BinarySearchFunc(registered, s, func(a, b Scheme) int { return strings.Compare(a.Name, b.Name) })
	registered = slices.Insert(registered, at, s)
	return s
}

// Schemes returns every kind of store that this program knows.
func Schemes() []Scheme {
	return slices.Concat([]Scheme{
		{
			Name: "file", Form: "file:PATH", Doc: "one file, shared by all processes of this machine",
			parse: fileurl.Parse, open: openFile, alike: []string{"sqlite", "sqlite3"},
		},
		{
			Name: "memory", Form: "memory:", Doc: "in this process only, gone with it: for trials",
			parse: nothing, open: func(context.Context, string, Options) (store.Store, error) { return memory.New(memory.Options{}), nil },
			alike: []string{"mem"},
		},
	}, registered, lockServers())
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
	if o, ok := leftOut[name]; ok && like(name) == "" {
		return URL{}, fmt.Errorf("store %q: %w; known here are %s", Redact(url), o, forms())
	}
	if lower := strings.ToLower(name); lower != name && meant(lower) != "" {
		return URL{}, fmt.Errorf("store %q: unknown scheme %q: write %s in lower case: %s", Redact(url), name, lower, meant(lower))
	}
	if port, _, _ := strings.Cut(rest, "/"); isPort(port) {
		scheme := ofPort(port)
		if scheme == unknownScheme {
			return URL{}, fmt.Errorf("store %q: it has no scheme: write %s://%s; known are %s", Redact(url), scheme, url, forms())
		}
		return URL{}, fmt.Errorf("store %q: it has no scheme: write %s://%s", Redact(url), scheme, url)
	}
	if form := like(name); form != "" {
		return URL{}, fmt.Errorf("store %q: unknown scheme %q: write %s; known are %s", Redact(url), name, form, forms())
	}
	if plain := strings.TrimSuffix(name, "s"); plain != name && strings.Contains(meant(plain), "://") {
		return URL{}, fmt.Errorf("store %q: unknown scheme %q: write %s://…?tls=true for TLS", Redact(url), name, plain)
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
	t, _ := fileurl.Read(u.Rest) // checked
	return filepath.Dir(t.Path)
}

func nothing(rest string) (string, error) {
	if rest != "" {
		return "", fmt.Errorf("%q after the colon: want nothing there", rest)
	}
	return "", nil
}

// StateDir returns Leasehold's folder in the user's state directory. It returns an error if there
// is no home directory.
func StateDir() (string, error) { return fileurl.StateDir(runtime.GOOS) }

// Default returns the URL of the store in the user's state directory. It returns an error if there
// is no home directory.
func Default() (string, error) {
	path, err := fileurl.Default()
	if err != nil {
		return "", err
	}
	return "file:" + path, nil
}
