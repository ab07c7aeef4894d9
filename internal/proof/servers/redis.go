package servers

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// Redis starts Redis, or Valkey where that is installed instead. It writes to the disk before it
// answers.
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

// redisReady asks whether it has read its data, before which it refuses all but questions like
// this, what it is, and of a replica that it is in step.
func redisReady(ctx context.Context, s *Server) error {
	script := "INFO persistence\r\nINFO replication\r\nQUIT\r\n"
	if p := s.Extra["password"]; p != "" {
		script = fmt.Sprintf("*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n%s", len(p), p, script)
	}
	want := "role:master\r\n"
	if s.config.primary != nil {
		want = "master_link_status:up\r\n"
	}
	answer, err := s.exchange(ctx, script)
	if err == nil && !(strings.Contains(answer, want) && strings.Contains(answer, "\nloading:0\r\n")) {
		err = fmt.Errorf("INFO answered %q", answer)
	}
	return err
}
