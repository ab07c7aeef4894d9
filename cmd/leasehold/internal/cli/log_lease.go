package cli

import (
	"context"
	"log/slog"
	"slices"

	"github.com/leasehold/leasehold/fence"
)

// leaseGroup is the group of attributes that says which lease a record is about: name, token and
// holder, as [fence.Sequencer] and [lease.Event] have them.
const leaseGroup = "lease"

// About has all that is logged from now on say that it is about that term, where it doesn't itself
// say something else. Fields that are empty are left out. On a log for people it changes nothing.
func (a *App) About(s fence.Sequencer) { a.about.Store(&s) }

func (a *App) whatAbout() fence.Sequencer {
	if s := a.about.Load(); s != nil {
		return *s
	}
	return fence.Sequencer{}
}

// leaseHandler adds the group lease to each record.
type leaseHandler struct {
	slog.Handler
	about func() fence.Sequencer
}

// Handle implements [slog.Handler]. What the record says of the lease itself counts.
func (h *leaseHandler) Handle(ctx context.Context, r slog.Record) error {
	group := h.about().LogValue().Group()
	rest := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(at slog.Attr) bool {
		if v := at.Value.Resolve(); at.Key == leaseGroup && v.Kind() == slog.KindGroup {
			for _, own := range v.Group() {
				group = slices.DeleteFunc(group, func(at slog.Attr) bool { return at.Key == own.Key })
				group = append(group, own)
			}
			return true
		}
		rest.AddAttrs(at)
		return true
	})
	if len(group) > 0 {
		rest.AddAttrs(slog.Attr{Key: leaseGroup, Value: slog.GroupValue(group...)})
	}
	return h.Handler.Handle(ctx, rest)
}

// WithAttrs implements [slog.Handler].
func (h *leaseHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &leaseHandler{h.Handler.WithAttrs(attrs), h.about}
}

// WithGroup implements [slog.Handler]. Records of a group have it inside.
func (h *leaseHandler) WithGroup(name string) slog.Handler {
	return &leaseHandler{h.Handler.WithGroup(name), h.about}
}
