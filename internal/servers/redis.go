package servers

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var redis = &engine{
	name: "redis", title: "Redis", ports: 1, options: "tls password replica settings",
	find:  onPath("redis-server", "valkey-server"),
	plan:  planRedis,
	ready: redisReady,
	adopt: func(s *Server, text string) error {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "redis" || u.Host == "" {
			return fmt.Errorf("want redis://[[USER]:PASSWORD@]HOST:PORT")
		}
		s.Addr, s.URL = u.Host, text
		s.Env["REDIS_URL"] = text
		if password, ok := u.User.Password(); ok {
			s.Extra["password"] = password
		}
		return nil
	},
}

// Redis starts Redis, or Valkey where that is installed instead. It writes to the disk before it answers.
func Redis(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, redis, opts) }

func planRedis(_ context.Context, s *Server, program string) (command, error) {
	settings := map[string]string{
		"bind": "127.0.0.1", "port": s.ports[0].String(), "dir": s.Dir, "daemonize": "no", "save": `""`,
		"appendonly": "yes", "appendfsync": "always", "repl-diskless-sync-delay": "0",
	}
	u := url.URL{Scheme: "redis", Host: s.Addr}
	if s.config.tls {
		u.Scheme = "rediss"
		settings["port"], settings["tls-port"], settings["tls-replication"] = "0", s.ports[0].String(), "yes"
		settings["tls-ca-cert-file"] = s.Extra["ca"]
		settings["tls-cert-file"], settings["tls-key-file"] = s.Extra["server-cert"], s.Extra["server-key"]
		settings["tls-auth-clients"] = "no"
	}
	if s.config.mutual {
		settings["tls-auth-clients"] = "yes"
	}
	if p := s.config.password; p != "" {
		settings["requirepass"], settings["masterauth"] = p, p
		s.Extra["user"], s.Extra["password"] = "default", p
		u.User = url.UserPassword("", p)
	}
	if s.config.primary != nil {
		settings["replicaof"] = strings.Replace(s.config.primary.Addr, ":", " ", 1)
	}
	s.URL = u.String()
	s.Env["REDIS_URL"] = s.URL
	for name, value := range s.config.settings {
		settings[name] = value
	}
	file := filepath.Join(s.Dir, "redis.conf")
	all := config{settings: settings}
	return command{args: []string{program, file}}, os.WriteFile(file, []byte(all.lines("%s %s")), 0o600)
}

// redisReady asks for a reply to a command that reads, and of a replica that it is in step.
func redisReady(ctx context.Context, s *Server) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	config, err := s.clientTLS()
	if err != nil {
		return err
	}
	var conn net.Conn
	if config != nil {
		conn, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", s.Addr)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	script := "INFO replication\r\nQUIT\r\n"
	if p := s.Extra["password"]; p != "" {
		script = fmt.Sprintf("*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n%s", len(p), p, script)
	}
	if _, err := conn.Write([]byte(script)); err != nil {
		return err
	}
	want := "role:master"
	if s.config.primary != nil {
		want = "master_link_status:up"
	}
	got := bufio.NewScanner(conn)
	last := ""
	for got.Scan() {
		if got.Text() == want {
			return nil
		}
		if got.Text() != "" {
			last = got.Text()
		}
	}
	return fmt.Errorf("no %q in its answer, which ended in %q (%v)", want, last, got.Err())
}
