package redis

import (
	"context"
	"errors"

	goredis "github.com/redis/go-redis/v9"
)

// errStopped says that the body of a loop over List has left it.
var errStopped = errors.New("stopped")

// reading is the answer to one of several reads.
type reading struct {
	answer []any
	err    error
}

// readAll reads several records in one round trip to each server. With known, a record of that
// version isn't shown again.
func (s *Store) readAll(ctx context.Context, keys, known []string) ([]reading, error) {
	cmds := make([]*goredis.Cmd, len(keys))
	for i, key := range keys {
		list := []any{"evalsha", getScript.sha, 1, s.opts.Prefix + key}
		if known != nil {
			list = append(list, known[i])
		}
		cmds[i] = goredis.NewCmd(ctx, list...)
	}
	err := s.wait(ctx, func() {
		// The errors are in the commands, too.
		_, _ = s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for _, cmd := range cmds {
				_ = p.Process(ctx, cmd)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	all := make([]reading, len(keys))
	for i, cmd := range cmds {
		answer, err := answerTo(cmd)
		if isRefusal(err, "NOSCRIPT") { // the first of them teaches it, and the others find it
			var args []any
			if known != nil {
				args = []any{known[i]}
			}
			answer, _, err = s.run(ctx, getScript, keys[i], false, args...)
		}
		if err != nil && !wrongType(err) {
			return nil, s.failed(ctx, err)
		}
		all[i] = reading{answer, err}
	}
	return all, nil
}
