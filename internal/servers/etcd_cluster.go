package servers

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// EtcdCluster starts an etcd of several members, each of which can be killed, paused and restarted by itself. Of the options it
// knows [Set] only.
func EtcdCluster(t testing.TB, members int, opts ...Option) []*Server {
	t.Helper()
	c := configure(opts)
	if c.tls || c.shared {
		t.Fatal("EtcdCluster has no option for TLS or sharing")
	}
	program, err := etcd.find()
	if err == nil {
		err = etcd.check(c)
	} else {
		err = etcd.missing(err)
	}
	if err != nil {
		fail(t, etcd, err)
	}
	var all []*Server
	var cluster []string
	dir := t.TempDir()
	for i := range members {
		name := fmt.Sprintf("member-%d", i)
		s := &Server{
			Engine: etcd.name, engine: etcd, config: c, Dir: filepath.Join(dir, name),
			Env: map[string]string{}, Extra: map[string]string{},
		}
		s.belongTo(t)
		if err := s.prepare(); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
		cluster = append(cluster, name+"=http://"+s.ports[1].addr())
	}
	for i, s := range all {
		name, peer, _ := strings.Cut(cluster[i], "=")
		s.command = s.etcdMember(program, name, peer, strings.Join(cluster, ","))
		err = errors.Join(err, s.run())
	}
	for _, s := range all {
		if err == nil {
			err = s.serves(t.Context())
		}
	}
	if err != nil {
		t.Fatalf("etcd: %v", err)
	}
	return all
}
