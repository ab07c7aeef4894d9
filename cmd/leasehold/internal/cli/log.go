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
// call of Write.
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
		return slog.New(slog.NewTextHandler(w, opts))
	case logJSON:
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(&plainHandler{w: w, level: level, mu: new(sync.Mutex)})
}

// Plain reports whether what is said is for people, who know what it is about.
func (a *App) Plain() bool {
	format := a.Values.Get("log-format")
	return format == "" || format == logPlain
}

// plainHandler writes lines for people. Attributes are behind the text; there are no groups.
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
	add := func(at slog.Attr) bool {
		text := at.Value.Resolve().String()
		if text == "" || strings.ContainsAny(text, " \"=\n\t") {
			text = strconv.Quote(text)
		}
		fmt.Fprintf(&b, " %s=%s", at.Key, text)
		return true
	}
	for _, at := range h.attrs {
		add(at)
	}
	r.Attrs(add)
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(b.Bytes())
	return err
}

// WithAttrs implements [slog.Handler].
func (h *plainHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *h
	more.attrs = append(slices.Clip(h.attrs), attrs...)
	return &more
}

// WithGroup implements [slog.Handler].
func (h *plainHandler) WithGroup(string) slog.Handler { return h }
