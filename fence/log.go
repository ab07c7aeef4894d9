package fence

import "log/slog"

// LogValue implements [slog.LogValuer]. The value is a group of name, token and holder, without
// those that are empty. Under the key "lease" it gives the attributes lease.name, lease.token and
// lease.holder, as in all log records of Leasehold:
//
//	log.Info("importing", "lease", l.Sequencer())
func (s Sequencer) LogValue() slog.Value {
	var attrs []slog.Attr
	if s.Name != "" {
		attrs = append(attrs, slog.String("name", s.Name))
	}
	if s.Token != 0 {
		attrs = append(attrs, slog.Uint64("token", uint64(s.Token)))
	}
	if s.Holder != "" {
		attrs = append(attrs, slog.String("holder", s.Holder))
	}
	return slog.GroupValue(attrs...)
}
