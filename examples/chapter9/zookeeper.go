package chapter9

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// ZooKeeper keeps a lock in a znode that ends with its session. The version of a znode begins at 0
// again when it is made again, so it tells no terms apart: here the name of the znode does, which
// has a number that rises.
type ZooKeeper struct{ Servers []string }

type znode struct {
	conn *zk.Conn
	path string
}

// Create implements Service. Each term has a session of its own, which the client keeps alive.
func (z ZooKeeper) Create(ctx context.Context, key, owner string, ttl time.Duration) (Held, error) {
	conn, err := z.connect(ctx, ttl)
	if err != nil {
		return Held{}, err
	}
	h, err := z.create(conn, key, owner)
	if err != nil {
		conn.Close() // which removes what it has made
	}
	return h, err
}

func (z ZooKeeper) create(conn *zk.Conn, key, owner string) (Held, error) {
	if _, err := conn.Create(key, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return Held{}, err
	}
	path, err := conn.Create(key+"/term-", []byte(owner), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return Held{}, err
	}
	first, err := lowest(conn, key)
	if err != nil {
		return Held{}, err
	}
	if path != first {
		return Held{}, ErrHeld
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(path, key+"/term-"), 10, 64)
	return Held{Key: key, Version: number, session: znode{conn, path}}, err
}

// lowest returns the znode of the present term, or "".
func lowest(conn *zk.Conn, key string) (string, error) {
	names, _, err := conn.Children(key)
	if err != nil || len(names) == 0 {
		return "", err
	}
	return key + "/" + slices.Min(names), nil
}

// Renew implements Service. The client sends signs of life by itself; this looks whether the term
// is there.
func (z ZooKeeper) Renew(_ context.Context, h Held) error {
	node := h.session.(znode)
	there, _, err := node.conn.Exists(node.path)
	if errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrClosing) || err == nil && !there {
		err = ErrLost
	}
	return err
}

// Remove implements Service.
func (z ZooKeeper) Remove(ctx context.Context, key string) error {
	conn, err := z.connect(ctx, 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	path, err := lowest(conn, key)
	if err != nil || path == "" {
		return err
	}
	return conn.Delete(path, -1)
}

// RemoveVersion implements Service.
func (z ZooKeeper) RemoveVersion(_ context.Context, h Held) error {
	node := h.session.(znode)
	defer node.conn.Close()
	err := node.conn.Delete(node.path, -1) // no other term has this name
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrClosing) || errors.Is(err, zk.ErrConnectionClosed) {
		err = ErrLost
	}
	return err
}

// Changed implements Service.
func (z ZooKeeper) Changed(ctx context.Context, key string) error {
	conn, err := z.connect(ctx, 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	path, err := lowest(conn, key)
	if err != nil || path == "" {
		return err
	}
	there, _, changed, err := conn.ExistsW(path)
	if err != nil || !there {
		return err
	}
	select {
	case event := <-changed:
		return event.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// End implements Service: the session ends.
func (z ZooKeeper) End(_ context.Context, h Held) error {
	h.session.(znode).conn.Close()
	return nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (z ZooKeeper) connect(ctx context.Context, timeout time.Duration) (*zk.Conn, error) {
	conn, events, err := zk.Connect(z.Servers, timeout, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return conn, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, ctx.Err()
		}
	}
}
