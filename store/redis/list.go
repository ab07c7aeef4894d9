package redis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// scanCount is how many keys the server looks at for one answer of a SCAN.
const scanCount = 500

// List implements [store.Store]. It scans all keys of the database, on each primary of a cluster,
// and reads the records that it finds.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := driver.CheckPrefix(prefix); err != nil {
			yield(store.Record{}, err)
			return
		}
		// SCAN is answered by a replica, too, and what it doesn't show nobody can refuse. This read
		// is.
		if _, _, err := s.run(ctx, getScript, "-", false); err != nil && !wrongType(err) {
			yield(store.Record{}, err)
			return
		}
		nodes, err := s.nodes(ctx)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		yielded := map[string]bool{} // a scan may show a key twice
		for _, node := range nodes {
			for cursor := "0"; ; {
				var keys []string
				cursor, keys, err = s.scan(ctx, node, cursor, prefix)
				if err == nil {
					keys = unseen(keys, yielded)
					err = s.yieldAll(ctx, keys, yield)
				}
				if errors.Is(err, errStopped) {
					return
				}
				if err != nil {
					yield(store.Record{}, err)
					return
				}
				if cursor == "0" {
					break
				}
			}
		}
	}
}

func unseen(keys []string, yielded map[string]bool) (fresh []string) {
	for _, key := range keys {
		if !yielded[key] {
			yielded[key] = true
			fresh = append(fresh, key)
		}
	}
	return fresh
}

// nodes returns what has to be scanned: every primary.
func (s *Store) nodes(ctx context.Context) ([]Client, error) {
	each := func(context.Context, func(context.Context, *goredis.Client) error) error { return nil }
	switch c := s.client.(type) {
	case interface {
		ForEachMaster(context.Context, func(context.Context, *goredis.Client) error) error
	}:
		each = c.ForEachMaster
	case interface {
		ForEachShard(context.Context, func(context.Context, *goredis.Client) error) error
	}:
		each = c.ForEachShard
	default:
		return []Client{s.client}, nil
	}
	var mu sync.Mutex
	var found []Client
	var failed error
	err := s.wait(ctx, func() {
		err := each(ctx, func(_ context.Context, c *goredis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, c)
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		failed = err
	})
	if err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	if failed != nil {
		failed = s.failed(ctx, failed)
	}
	return found, failed
}

// glob escapes what SCAN takes for a pattern.
var glob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// scan returns the next cursor, "0" at the end, and keys without the store's prefix.
func (s *Store) scan(ctx context.Context, node Client, cursor, prefix string) (next string, keys []string, err error) {
	cmd := goredis.NewCmd(ctx, "scan", cursor, "match", glob.Replace(s.opts.Prefix+prefix)+"*", "count", scanCount)
	if err := s.wait(ctx, func() { _ = node.Process(ctx, cmd) }); err != nil {
		return "", nil, err
	}
	answer, err := cmd.Slice()
	if err != nil {
		return "", nil, s.failed(ctx, err)
	}
	if len(answer) != 2 {
		return "", nil, fmt.Errorf("SCAN answered %d parts, want 2", len(answer))
	}
	next, _ = answer[0].(string)
	list, _ := answer[1].([]any)
	for _, k := range list {
		if key, ok := k.(string); ok {
			keys = append(keys, strings.TrimPrefix(key, s.opts.Prefix))
		}
	}
	return next, keys, nil
}

// readBatch is how many records are read in one round trip.
const readBatch = 100

// yieldAll reads the records under keys and yields them. It returns errStopped when the body of the
// loop did.
func (s *Store) yieldAll(ctx context.Context, keys []string, yield func(store.Record, error) bool) error {
	for len(keys) > 0 {
		n := min(len(keys), readBatch)
		read, err := s.readAll(ctx, keys[:n], nil)
		if err != nil {
			return err
		}
		for i, key := range keys[:n] {
			answer, err := read[i].answer, read[i].err
			var rec store.Record
			switch {
			case err == nil && first(answer) == answerMissing:
				continue
			case err == nil:
				rec, err = s.record(key, answer)
			case wrongType(err):
				err = driver.Corrupt(key, err)
			default:
				return err
			}
			if !yield(rec, err) {
				return errStopped
			}
		}
		keys = keys[n:]
	}
	return nil
}
