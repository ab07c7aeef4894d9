package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The forms of what the program says on standard error.
const (
	logPlain = "plain" // for people: leasehold: TEXT
	logText  = "text"  // key=value, with time and level
	logJSON  = "json"
)

var (
	logFormats = []string{logPlain, logText, logJSON}
	logLevels  = []string{"debug", "info", "warn", "error"}
)

func checkLogFormat(v string) error { return oneOf(v, logFormats) }
func checkLogLevel(v string) error  { return oneOf(v, logLevels) }

func oneOf(v string, all []string) error {
	if !slices.Contains(all, v) {
		return fmt.Errorf("%q: want %s", v, strings.Join(all, ", "))
	}
	return nil
}

// LogTo returns a log in the form and of the level that are set, whose lines go to w, each in one
// call of Write. Unless it is for people, each record says which lease it is about.
func (a *App) LogTo(w io.Writer) *slog.Logger {
	level := slog.LevelInfo
	if text := a.Values.Get("log-level"); text != "" {
		_ = level.UnmarshalText([]byte(text)) // checked before
	}
	if a.Quiet() {
		level = slog.LevelError
	}
	opts := &slog.HandlerOptions{Level: level}
	switch a.Values.Get("log-format") {
	case logText:
		return slog.New(&leaseHandler{slog.NewTextHandler(w, opts), a.whatAbout})
	case logJSON:
		return slog.New(&leaseHandler{slog.NewJSONHandler(w, opts), a.whatAbout})
	}
	return slog.New(&plainHandler{w: w, level: level, mu: new(sync.Mutex)})
}

// Plain reports whether what is said is for people, who know what it is about.
func (a *App) Plain() bool {
	format := a.Values.Get("log-format")
	return format == "" || format == logPlain
}

// plainHandler writes lines for people. Attributes are behind the text; those of a group have its
// name and a dot before theirs.
type plainHandler struct {
	w     io.Writer
	level slog.Level
	attrs []slog.Attr
	mu    *sync.Mutex
}

// Enabled implements [slog.Handler].
func (h *plainHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle implements [slog.Handler].
func (h *plainHandler) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	b.WriteString("leasehold: ")
	b.WriteString(r.Message)
	for _, at := range h.attrs {
		writePlain(&b, "", at)
	}
	r.Attrs(func(at slog.Attr) bool {
		writePlain(&b, "", at)
		return true
	})
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(b.Bytes())
	return err
}

func writePlain(b *bytes.Buffer, prefix string, at slog.Attr) {
	v := at.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		for _, inner := range v.Group() {
			writePlain(b, prefix+at.Key+".", inner)
		}
		return
	}
	text := v.String()
	if text == "" || strings.ContainsAny(text, " \"=\n\t") {
		text = strconv.Quote(text)
	}
	fmt.Fprintf(b, " %s%s=%s", prefix, at.Key, text)
}

// WithAttrs implements [slog.Handler].
func (h *plainHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *h
	more.attrs = append(slices.Clip(h.attrs), attrs...)
	return &more
}

// WithGroup implements [slog.Handler].
func (h *plainHandler) WithGroup(string) slog.Handler { return h }
