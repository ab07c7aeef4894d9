package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/notify"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Wait implements [store.Waiter]. A read that fails for some 5 s ends it.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	rec, err := s.waiters.Wait(ctx, notify.Want{Key: key, Version: version}, func(ctx context.Context) (store.Record, error) {
		return s.load(ctx, getScript, key, false)
	})
	if err != nil {
		return rec, err
	}
	return s.sure(ctx, rec)
}

// source is what the waiters read from and listen to.
type source struct{ s *Store }

// Read implements [notify.Source], in one round trip to each server.
func (src source) Read(ctx context.Context, wants []notify.Want) ([]notify.Result, error) {
	keys, known := make([]string, len(wants)), make([]string, len(wants))
	for i, w := range wants {
		keys[i], known[i] = w.Key, w.Version
	}
	read, err := src.s.readAll(ctx, keys, known)
	if err != nil {
		return nil, err
	}
	results := make([]notify.Result, len(wants))
	for i, r := range read {
		switch word := first(r.answer); {
		case r.err != nil:
			results[i].Err = driver.Corrupt(keys[i], r.err)
		case word == answerMissing:
			results[i] = notify.Result{Changed: true, Rec: store.Record{Key: keys[i]}}
		case word != answerSame:
			rec, err := src.s.record(keys[i], r.answer)
			results[i] = notify.Result{Changed: true, Rec: rec, Err: err}
		}
	}
	return results, nil
}

// quiet is how long nothing comes before the connection is tried, and again before it is given up.
const quiet = 5 * time.Second

// topic is the channel that tells of a key. Older processes tell of all keys on the handle's
// channel itself.
func (s *Store) topic(key string) string {
	if s.channel == "" {
		return ""
	}
	return s.channel + ":" + key
}

// Listen implements [notify.Source].
func (src source) Listen(ctx context.Context, ear notify.Ear) error {
	subscriber, ok := src.s.client.(Subscriber)
	if !ok || src.s.channel == "" {
		return notify.ErrDeaf
	}
	ctx, cancel := context.WithCancelCause(ctx)
	sub := subscriber.Subscribe(ctx, src.s.channel)
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() }) // which ends a Receive
	var following sync.WaitGroup
	following.Go(func() { cancel(src.follow(ctx, sub, ear)) })
	defer func() {
		if stop() {
			_ = sub.Close()
		}
		cancel(nil)
		following.Wait()
	}()
	return src.hear(ctx, sub, ear)
}

// follow subscribes to what tells of the keys that the ear names, and unsubscribes from it, until
// that fails or ctx is done.
func (src source) follow(ctx context.Context, sub *goredis.PubSub, ear notify.Ear) error {
	topics := func(keys []string) []string {
		for i, key := range keys {
			keys[i] = src.s.topic(key)
		}
		return keys
	}
	for ctx.Err() == nil {
		begin, end := ear.Next()
		if len(begin) > 0 {
			if err := sub.Subscribe(ctx, topics(begin)...); err != nil {
				return err
			}
		}
		if len(end) > 0 {
			if err := sub.Unsubscribe(ctx, topics(end)...); err != nil {
				return err
			}
		}
		look := clock.NewTimer(clock.System(), quiet)
		select {
		case <-ear.More():
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
	}
	return context.Cause(ctx)
}

// hear passes on what the subscription tells, until its connection is dead.
func (src source) hear(ctx context.Context, sub *goredis.PubSub, ear notify.Ear) error {
	tried := false
	for {
		msg, err := sub.ReceiveTimeout(ctx, quiet)
		var late net.Error
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &late) && late.Timeout():
			if tried {
				return fmt.Errorf("the connection that listens is dead: %w", err)
			}
			tried = true
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		tried = false
		switch m := msg.(type) {
		case *goredis.Subscription: // also after the client has connected anew by itself
			key, ofKey := strings.CutPrefix(m.Channel, src.s.channel+":")
			switch {
			case m.Kind == "unsubscribe":
			case ofKey:
				ear.Covers(key)
			default:
				ear.Up()
			}
		case *goredis.Message:
			ear.Changed(m.Payload)
		}
	}
}
