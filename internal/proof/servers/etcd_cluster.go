package servers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// EtcdCluster starts an etcd of several members, each of which can be killed, paused and restarted
// by itself. Of the options it knows [Set] only.
func EtcdCluster(t testing.TB, members int, opts ...Option) []*Server {
	t.Helper()
	all, err := LaunchEtcdCluster(t.Context(), t.TempDir(), members, opts...)
	for _, s := range all {
		s.belongTo(t)
	}
	if err != nil {
		fail(t, etcd, err)
	}
	return all
}

// LaunchEtcdCluster is [EtcdCluster] with its data below dir, as [Launch] starts servers. The
// caller stops its members, also those that it returns with an error.
func LaunchEtcdCluster(ctx context.Context, dir string, members int, opts ...Option) (all []*Server, err error) {
	c := configure(opts)
	if c.tls || c.shared {
		return nil, errors.New("a cluster of etcd has no option for TLS or sharing")
	}
	if err := etcd.check(c); err != nil {
		return nil, err
	}
	program, err := etcd.find()
	if err != nil {
		return nil, etcd.missing(err)
	}
	var cluster []string
	for i := range members {
		name := fmt.Sprintf("member-%d", i)
		s := &Server{
			Engine: etcd.name, engine: etcd, config: c, Dir: filepath.Join(dir, name),
			Env: map[string]string{}, Extra: map[string]string{},
		}
		all = append(all, s)
		if err := s.prepare(); err != nil {
			return all, err
		}
		cluster = append(cluster, name+"=http://"+s.ports[1].addr())
	}
	for i, s := range all {
		name, peer, _ := strings.Cut(cluster[i], "=")
		s.command = s.etcdMember(program, name, peer, strings.Join(cluster, ","))
		if err := s.run(); err != nil {
			return all, err
		}
	}
	for _, s := range all {
		if err := s.serves(ctx); err != nil {
			return all, fmt.Errorf("etcd: %w", err)
		}
	}
	return all, nil
}
