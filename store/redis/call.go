package redis

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"
)

// command is one that the client sends at most once, redirections apart, which are refusals. What
// sent is told when the client writes it to a connection.
type command struct {
	*goredis.Cmd
	sent *ticket
}

// NoRetry has the client not send it again.
func (command) NoRetry() bool { return true }

// ticket is the argument of a command that sees whether it is sent, and that can be torn up before.
type ticket struct {
	text  string
	state atomic.Int32
}

const (
	unused int32 = iota
	used         // the command was sent, or is being sent
	torn         // it never will be
)

var errTorn = errors.New("given up before it was sent")

// MarshalBinary is called by the client when it sends the command.
func (t *ticket) MarshalBinary() ([]byte, error) {
	if !t.state.CompareAndSwap(unused, used) && t.state.Load() == torn {
		return nil, errTorn
	}
	return []byte(t.text), nil
}

func (t *ticket) String() string { return t.text }

// tear reports whether the command was not sent, and never will be.
func (t *ticket) tear() bool { return t.state.CompareAndSwap(unused, torn) || t.state.Load() == torn }

// wait has f, which calls the client, run to its end, and waits for it as long as ctx lasts. It
// returns the cause of ctx when that was over first; what f did is then its own.
func (s *Store) wait(ctx context.Context, f func()) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer s.running.Done()
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run has the server run a script on a record's key and returns its answer. After an error, unknown
// is whether the script may have run. replicas is whether those have to acknowledge it.
func (s *Store) run(ctx context.Context, sc script, key string, replicas bool, args ...any) (answer []any, unknown bool, err error) {
	for _, name := range [][2]string{{"evalsha", sc.sha}, {"eval", sc.text}} {
		t := &ticket{text: name[1]}
		var tooFew error
		cmd := s.command(ctx, name[0], t, key, args)
		err := s.wait(ctx, func() {
			if replicas && s.opts.Replicas > 0 {
				tooFew = s.replicated(ctx, cmd, s.opts.Prefix+key)
			} else {
				_ = s.client.Process(ctx, cmd) // it is in cmd, too
			}
		})
		if err != nil { // ctx ended, and cmd is the goroutine's; or nothing was begun
			return nil, !t.tear(), err
		}
		answer, err = answerTo(cmd.Cmd)
		switch {
		case isRefusal(err, "NOSCRIPT"):
			continue
		case err != nil:
			return nil, !isRefusal(err, "") && !t.tear(), s.failed(ctx, err)
		}
		return answer, tooFew != nil, tooFew
	}
	return nil, false, s.failed(ctx, errors.New("the server forgets scripts as they are sent"))
}

// command calls a script on a record's key.
func (s *Store) command(ctx context.Context, name string, t *ticket, key string, args []any) command {
	list := make([]any, 0, 4+len(args))
	list = append(append(list, name, t, 1, s.opts.Prefix+key), args...)
	return command{goredis.NewCmd(ctx, list...), t}
}

// isRefusal reports whether err is the server's own answer, one that begins so.
func isRefusal(err error, prefix string) bool {
	var answer goredis.Error
	return errors.As(err, &answer) && !errors.Is(err, goredis.Nil) && strings.HasPrefix(answer.Error(), prefix)
}

// failed returns err for the caller: the cause of a context that ended, or what to do.
func (s *Store) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil && !isRefusal(err, "") {
		return context.Cause(ctx)
	}
	return explain(err, s.opts.Prefix)
}

// answerTo returns what a script answered, also where that is a word alone.
func answerTo(cmd *goredis.Cmd) ([]any, error) {
	if word, ok := cmd.Val().(string); ok && cmd.Err() == nil {
		return []any{word}, nil
	}
	return cmd.Slice()
}

func first(answer []any) string {
	if len(answer) == 0 {
		return ""
	}
	word, _ := answer[0].(string)
	return word
}
