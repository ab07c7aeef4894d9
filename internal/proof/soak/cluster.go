//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/postgres"
)

// cluster is the servers of an engine, one of which leads.
type cluster interface {
	// failOver kills the one that leads. It calls serves when another one leads and serves, and
	// returns when the one that was killed is back and has all.
	failOver(ctx context.Context, serves func()) error
	stop()
}

// launch starts the servers of the run's engine, if that has some, and says where they are: in
// Store for clients, and as target for the command. The cluster is nil where there is none.
func (c *config) launch(ctx context.Context, dir string) (all cluster, target string, err error) {
	dir = filepath.Join(dir, c.Engine)
	switch c.Engine {
	case onEtcd:
		all, err = launchEtcd(ctx, dir, c)
		target = "etcd://" + c.Store
	case onPostgres:
		all, err = launchPair(ctx, dir, c)
		target = c.Store
	default:
		if c.Store == "" {
			c.Store = filepath.Join(filepath.Dir(dir), "soak.db")
		}
		return nil, "file:" + c.Store, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("-engine %s: %w", c.Engine, err)
	}
	return all, target, nil
}

// members are those of an etcd.
type members []*servers.Server

func launchEtcd(ctx context.Context, dir string, c *config) (cluster, error) {
	all, err := servers.LaunchEtcdCluster(ctx, dir, 3)
	if err != nil {
		members(all).stop()
		return nil, err
	}
	var addrs []string
	for _, m := range all {
		addrs = append(addrs, m.Addr)
	}
	c.Store = strings.Join(addrs, ",")
	return members(all), nil
}

func (all members) stop() {
	for _, m := range all {
		m.Stop()
	}
}

func (all members) failOver(ctx context.Context, serves func()) (err error) {
	client, err := newEtcdClient(ctx, all[0].Addr+","+all[1].Addr+","+all[2].Addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	leader, err := all.leader(ctx, client, nil)
	if err != nil {
		return err
	}
	leader.Crash()
	next, err := all.leader(ctx, client, leader)
	if err != nil {
		return err
	}
	// By a majority.
	if err := until(ctx, func() error { _, err := client.Get(ctx, "soak"); return err }); err != nil {
		return fmt.Errorf("etcd doesn't serve under %s: %w", next.Addr, err)
	}
	serves()
	return leader.Revive(ctx)
}

// leader returns the member that leads by its own word, once one other than before does.
func (all members) leader(ctx context.Context, client *clientv3.Client, before *servers.Server) (leader *servers.Server, err error) {
	err = until(ctx, func() error {
		for _, m := range all {
			if m == before {
				continue
			}
			if s, err := client.Status(ctx, m.URL); err == nil && s.Leader == s.Header.MemberId {
				leader = m
				return nil
			}
		}
		return errors.New("no member of etcd leads")
	})
	return leader, err
}

// pair is a primary of PostgreSQL, and a standby for which its commits wait.
type pair struct{ primary, standby *servers.Server }

func launchPair(ctx context.Context, dir string, c *config) (_ cluster, err error) {
	connections := servers.Set("max_connections", "300")
	p := &pair{}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	if p.primary, err = servers.Launch(ctx, onPostgres, filepath.Join(dir, "a"), connections); err != nil {
		return nil, err
	}
	if p.standby, err = servers.Launch(ctx, onPostgres, filepath.Join(dir, "b"), connections, servers.ReplicaOf(p.primary)); err != nil {
		return nil, err
	}
	if err := p.synchronous(ctx); err != nil {
		return nil, err
	}
	u, err := url.Parse(p.primary.URL)
	if err != nil {
		return nil, err
	}
	u.Host += "," + p.standby.Addr
	q := u.Query()
	q.Set("target_session_attrs", "read-write")
	u.RawQuery = q.Encode()
	c.Store = u.String()
	pool, err := pgxpool.New(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	return p, postgres.Create(ctx, pool, "")
}

func (p *pair) stop() {
	for _, s := range []*servers.Server{p.primary, p.standby} {
		if s != nil {
			s.Stop()
		}
	}
}

// failOver kills the primary and promotes the standby. The old primary follows it then, with a copy
// of its data. Until that has all, no commit waits for it, and nobody may promote it.
func (p *pair) failOver(ctx context.Context, serves func()) error {
	p.primary.Crash()
	err := execute(ctx, p.standby, "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_promote()", "SELECT pg_reload_conf()")
	if err != nil {
		return err
	}
	serves()
	p.primary, p.standby = p.standby, p.primary
	if err := p.standby.Follow(ctx, p.primary); err != nil {
		return err
	}
	return p.synchronous(ctx)
}

// synchronous has the primary's commits wait for the standby.
func (p *pair) synchronous(ctx context.Context) error {
	if err := execute(ctx, p.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	const is = "SELECT 1 / count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
	if err := until(ctx, func() error { return execute(ctx, p.primary, is) }); err != nil {
		return fmt.Errorf("no standby of PostgreSQL is synchronous: %w", err)
	}
	// By the process that has commits wait, which hears of the setting by itself.
	return execute(ctx, p.primary, "CHECKPOINT")
}

// execute runs statements, one after the other.
func execute(ctx context.Context, s *servers.Server, statements ...string) (err error) {
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// until tries f until it works or ctx is done.
func until(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || clock.Sleep(ctx, clock.System(), 20*time.Millisecond) != nil {
			return err
		}
	}
}
