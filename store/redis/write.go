package redis

import (
	"context"
	"errors"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/enginekit/outcome"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// write is a script that changes one record if it has the version that is demanded.
type write struct {
	script script
	key    string
	args   []any
	size   int // bytes on the wire, rather too many

	version, nonce string // that it gives the record; "" when it deletes it

	answer  []any
	err     error
	unknown bool // it may have been done, in spite of err
}

// Key and Size have writes sent in groups.
func (w *write) Key() string { return w.key }
func (w *write) Size() int   { return w.size }

// putting returns the write of a record.
func (s *Store) putting(rec store.Record) (*write, error) {
	body, err := marshalApart(rec)
	if err != nil {
		return nil, err
	}
	version, past := shelve(rec.Version, rec.Past)
	w := s.newWrite(putScript, rec.Key, append([]any{rec.Version, version, body, s.topic(rec.Key), rec.Key}, past...))
	w.version, w.nonce = version, rec.Nonce
	return w, nil
}

func (s *Store) deleting(key, version string) *write {
	return s.newWrite(deleteScript, key, []any{version, s.topic(key), key})
}

func (s *Store) newWrite(sc script, key string, args []any) *write {
	const around = len("$12345\r\n\r\n") // each argument
	w := &write{script: sc, key: key, args: args, size: len("*10\r\nevalsha1") + len(sc.sha) + len(s.opts.Prefix+key) + around*(4+len(args))}
	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			w.size += len(arg)
		case []byte:
			w.size += len(arg)
		}
	}
	return w
}

// write has w done. With Replicas, a write of unknown outcome stays in doubt until replicas have
// acknowledged a later one.
func (s *Store) write(ctx context.Context, w *write) error {
	if s.opts.Replicas == 0 {
		return s.carryOut(ctx, w)
	}
	defer s.doubts.Begin(w.key, "", w.nonce)()
	since := s.doubts.Now()
	err := s.carryOut(ctx, w)
	var conflict *store.ConflictError
	switch {
	case err == nil:
		s.doubts.Done(w.key, since)
		return nil
	case errors.Is(err, store.ErrUnknownOutcome):
		s.doubts.Unknown(w.key, w.nonce)
		return err
	case errors.As(err, &conflict):
		return s.sureRefusal(ctx, conflict.Current)
	case errors.Is(err, store.ErrNotFound):
		return s.sureRefusal(ctx, store.Record{Key: w.key})
	}
	return err
}

// sureRefusal returns the error of a write that was refused because that record was there.
func (s *Store) sureRefusal(ctx context.Context, rec store.Record) error {
	sure, err := s.sure(ctx, rec)
	return outcome.Refusal(rec.Key, sure, err)
}

// carryOut has w done, by itself or together with others that are asked for at the same time.
func (s *Store) carryOut(ctx context.Context, w *write) error {
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
		return driver.Unknown(w.key, err)
	}
	return err
}

// mostRead is what a server reads from a connection at once, before it does what that asks for,
// syncs and answers: a pipeline of twice as much would take twice as long.
const mostRead = 16 << 10

// together sends writes in as few pipelines as have the server read all of them at once, at the
// same time. It returns when all are answered, at the latest after the client's own time-outs.
func (s *Store) together(ctx context.Context, group []*write) {
	var others sync.WaitGroup
	defer others.Wait()
	first, bytes := 0, 0
	for i, w := range group {
		if bytes += w.size; bytes > mostRead && i > first {
			part := group[first:i]
			others.Go(func() { s.pipeline(ctx, part) })
			first, bytes = i, w.size
		}
	}
	s.pipeline(ctx, group[first:])
}

func (s *Store) pipeline(ctx context.Context, group []*write) {
	cmds := make([]command, len(group))
	for i, w := range group {
		cmds[i] = s.command(ctx, "evalsha", &ticket{text: w.script.sha}, w.key, w.args)
	}
	// The errors are in the commands, too.
	_, _ = s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for _, cmd := range cmds {
			_ = p.Process(ctx, cmd)
		}
		return nil
	})
	for i, w := range group {
		answer, err := answerTo(cmds[i].Cmd)
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
	case w.unknown && (word == "" || word == answerDone):
		return driver.Unknown(w.key, w.err)
	case wrongType(w.err):
		return driver.Corrupt(w.key, w.err)
	case w.err != nil && word == "":
		return w.err
	case word == answerDone:
		return nil
	case word == answerMissing:
		return driver.NotFound(w.key)
	}
	rec, err := s.record(w.key, w.answer)
	if err != nil {
		return err
	}
	return &store.ConflictError{Current: rec}
}

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	w, err := s.putting(rec)
	if err != nil {
		return store.Record{}, err
	}
	kept := driver.Canonical(rec)
	kept.Version = w.version
	if err := s.write(ctx, w); err != nil {
		return store.Record{}, err
	}
	return kept, nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	return s.write(ctx, s.deleting(key, version))
}
