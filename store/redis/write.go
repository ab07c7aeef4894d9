package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/store"
)

// write is a script that changes one record if it has the version that is demanded.
type write struct {
	script script
	key    string
	args   []any
	size   int

	answer  []any
	unknown bool // after an error: it may have been done
	err     error
}

// Key and Size have writes sent in groups.
func (w *write) Key() string { return w.key }
func (w *write) Size() int   { return w.size }

// write has w done, by itself or together with others that are asked for at the same time.
func (s *Store) write(ctx context.Context, w *write) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	alone := func() { w.answer, w.unknown, w.err = s.run(ctx, w.script, w.key, true, w.args...) }
	if s.opts.Replicas > 0 { // who acknowledged it has to be asked on the same connection
		alone()
		return s.outcome(w)
	}
	sent, err := s.writes.Do(ctx, w, alone)
	switch {
	case err == nil:
		return s.outcome(w)
	case sent:
		return store.Unknown(w.key, err)
	}
	return err
}

// together sends writes in one pipeline. It returns when all are answered, at the latest after the client's own time-outs.
func (s *Store) together(ctx context.Context, group []*write) {
	cmds := make([]command, len(group))
	for i, w := range group {
		cmds[i] = s.command(ctx, "evalsha", &ticket{text: w.script.sha}, w.key, w.args)
	}
	_, _ = s.client.Pipelined(ctx, func(p goredis.Pipeliner) error { // the errors are in the commands, too
		for _, cmd := range cmds {
			_ = p.Process(ctx, cmd)
		}
		return nil
	})
	for i, w := range group {
		answer, err := cmds[i].Slice()
		switch {
		case isRefusal(err, "NOSCRIPT"): // the first of them teaches it, and the others find it
			w.answer, w.unknown, w.err = s.run(ctx, w.script, w.key, false, w.args...)
		case err != nil:
			w.unknown, w.err = !isRefusal(err, "") && !cmds[i].sent.tear(), s.failed(ctx, err)
		default:
			w.answer = answer
		}
	}
}

// outcome returns what came of w: nil when it was done.
func (s *Store) outcome(w *write) error {
	word := first(w.answer)
	switch {
	case w.err != nil && w.unknown && (word == "" || word == answerDone):
		return store.Unknown(w.key, w.err)
	case wrongType(w.err):
		return store.Corrupt(w.key, w.err)
	case w.err != nil && word == "":
		return w.err
	case word == answerDone:
		return nil
	case word == answerMissing:
		return store.NotFound(w.key)
	}
	rec, err := s.record(w.key, w.answer)
	if err != nil {
		return err
	}
	return &store.ConflictError{Current: rec}
}
