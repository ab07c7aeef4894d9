package fence_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/leasehold/leasehold/fence"
)

func TestSequencerInALog(t *testing.T) {
	for _, c := range []struct {
		seq  fence.Sequencer
		want string
	}{
		{fence.Sequencer{Name: "a b", Token: fence.MaxToken, Holder: "web-1"}, "msg=m lease.name=\"a b\" lease.token=9007199254740991 lease.holder=web-1\n"},
		{fence.Sequencer{Name: "a"}, "msg=m lease.name=a\n"},
		{fence.Sequencer{}, "msg=m\n"},
	} {
		var b bytes.Buffer
		log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(groups []string, at slog.Attr) slog.Attr {
			if len(groups) == 0 && (at.Key == slog.TimeKey || at.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return at
		}}))
		log.Info("m", "lease", c.seq)
		if b.String() != c.want {
			t.Errorf("%+v: %q, want %q", c.seq, b.String(), c.want)
		}
	}
}
