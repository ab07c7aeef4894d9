package servers

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var redis = register(&engine{
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
	store:  func(s *Server) Store { return Store{URL: s.URL} },
	page:   Page{Scheme: "redis://", Address: regexp.MustCompile(`redis://[0-9.:]+`)},
	client: redisClient{},
})

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

// redisClient is the plainest client.
type redisClient struct{}

func (redisClient) run(ctx context.Context, s *Server, commands ...string) (string, error) {
	if p := s.Extra["password"]; p != "" {
		commands = append([]string{"AUTH " + p}, commands...)
	}
	return s.exchange(ctx, strings.Join(commands, "\r\n")+"\r\nQUIT\r\n")
}

func (r redisClient) put(ctx context.Context, s *Server, value string) error {
	text, err := r.run(ctx, s, "SET key "+value)
	return wants(0, "+OK\r\n+OK\r\n")(0, strings.TrimPrefix(text, strings.Repeat("+OK\r\n", min(1, len(s.Extra["password"])))), err)
}

func (r redisClient) get(ctx context.Context, s *Server) (string, error) {
	text, err := r.run(ctx, s, "GET key")
	if err != nil {
		return "", err
	}
	_, text, _ = strings.Cut(text, "$")
	_, text, _ = strings.Cut(text, "\r\n")
	value, _, _ := strings.Cut(text, "\r\n")
	return value, nil
}
