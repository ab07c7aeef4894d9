package redis

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
)

// masters is what a cluster's client has beyond [Client].
type masters interface {
	MasterForKey(ctx context.Context, key string) (*goredis.Client, error)
	ReloadState(ctx context.Context)
}

// replicated sends cmd, and on the same connection a WAIT, for which nothing else will do. It
// returns an error when too few replicas have acknowledged what cmd wrote; what became of cmd is in
// cmd.
func (s *Store) replicated(ctx context.Context, cmd command, key string) error {
	node := s.client
	if cluster, ok := node.(masters); ok {
		master, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			cmd.SetErr(err)
			return nil
		}
		node = master
	}
	wait := goredis.NewCmd(ctx, "wait", s.opts.Replicas, s.opts.ReplicaWait.Milliseconds())
	// The errors are in the commands, too.
	_, _ = node.Pipelined(ctx, func(p goredis.Pipeliner) error {
		_ = p.Process(ctx, cmd)
		_ = p.Process(ctx, wait)
		return nil
	})
	if cluster, ok := s.client.(masters); ok && isRefusal(cmd.Err(), "MOVED") {
		cluster.ReloadState(ctx) // for the next one
	}
	acknowledged, err := wait.Int()
	switch {
	case cmd.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("it is on the primary; whether replicas have it isn't known: %w", explain(err, s.opts.Prefix))
	case acknowledged < s.opts.Replicas:
		return fmt.Errorf("it is on the primary, and %d replicas acknowledged it within %v, not %d", acknowledged, s.opts.ReplicaWait, s.opts.Replicas)
	}
	return nil
}
