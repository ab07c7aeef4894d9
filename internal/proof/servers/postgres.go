package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var postgres = register(&engine{
	name: "postgres", title: "PostgreSQL", ports: 1, options: "tls password replica settings",
	death: sigQuit, // the immediate shutdown, which takes the shared memory away
	find:  findPostgres,
	plan:  planPostgres,
	sweep: sweepPostgres,
	ready: func(ctx context.Context, s *Server) error {
		program, err := findPostgres()
		if err != nil {
			return dials(ctx, s.Addr)
		}
		host, port, _ := net.SplitHostPort(s.Addr)
		out, err := exec.CommandContext(ctx, filepath.Join(filepath.Dir(program), "pg_isready"), "-h", host, "-p", port).CombinedOutput()
		if err != nil {
			return fmt.Errorf("pg_isready: %w: %s", err, out)
		}
		return nil
	},
	adopt: func(s *Server, text string) error {
		u, err := url.Parse(text)
		if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") || u.Port() == "" {
			return fmt.Errorf("want postgres://USER@HOST:PORT/DATABASE")
		}
		s.Addr, s.URL = u.Host, text
		return nil
	},
	store:  func(s *Server) Store { return Store{URL: s.URL, Init: "postgres"} },
	page:   Page{Address: regexp.MustCompile(`postgres://[a-z0-9.:@/?=_]+`)},
	client: postgresClient{},
})

// Postgres starts PostgreSQL with the superuser postgres, who needs no password without [Password].
func Postgres(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, postgres, opts) }

// findPostgres finds the newest version that Debian has installed, which is not on the PATH, or
// else that on the PATH.
func findPostgres() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return onPath("postgres")()
	}
	version := func(path string) int {
		n, err := strconv.Atoi(strings.Split(path, "/")[4])
		if err != nil {
			return 0
		}
		return n
	}
	return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }), nil
}

func planPostgres(ctx context.Context, s *Server, program string) (command, error) {
	var as *account
	if os.Getuid() == 0 {
		var err error
		if as, err = s.serviceAccount(); err != nil {
			return command{}, err
		}
	}
	data := filepath.Join(s.Dir, "data")
	bin := filepath.Dir(program)
	if err := s.populate(ctx, bin, data, as); err != nil {
		return command{}, err
	}
	u := url.URL{Scheme: "postgres", Host: s.Addr, Path: "/postgres", User: url.User("postgres")}
	query := url.Values{"sslmode": {"disable"}}
	host, port, _ := net.SplitHostPort(s.Addr)
	s.Env["PGHOST"], s.Env["PGPORT"], s.Env["PGUSER"], s.Env["PGDATABASE"] = host, port, "postgres", "postgres"
	s.Extra["user"], s.Extra["bin"] = "postgres", bin
	if p := s.config.password; p != "" {
		u.User = url.UserPassword("postgres", p)
		s.Env["PGPASSWORD"], s.Extra["password"] = p, p
	}
	if s.config.tls {
		query = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {s.Extra["ca"]}}
		s.Env["PGSSLROOTCERT"] = s.Extra["ca"]
		if s.config.mutual {
			query.Set("sslcert", s.Extra["cert"])
			query.Set("sslkey", s.Extra["key"])
			s.Env["PGSSLCERT"], s.Env["PGSSLKEY"] = s.Extra["cert"], s.Extra["key"]
		}
	}
	s.Env["PGSSLMODE"] = query.Get("sslmode")
	u.RawQuery = query.Encode()
	s.URL = u.String()
	if err := s.configurePostgres(data, as); err != nil {
		return command{}, err
	}
	return command{args: []string{program, "-D", data}, as: as}, nil
}

// populate makes the data folder: a new cluster, or a copy of the primary's.
func (s *Server) populate(ctx context.Context, bin, data string, as *account) error {
	args := []string{filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"}
	env := os.Environ()
	if p := s.config.primary; p != nil {
		args = []string{
			filepath.Join(bin, "pg_basebackup"), "-D", data, "-d", p.URL, "-R", "-X", "stream", "-c", "fast", "-N",
		}
	} else if s.config.password != "" {
		file := filepath.Join(s.Dir, "password")
		if err := s.writeFor(as, file, s.config.password+"\n"); err != nil {
			return err
		}
		args = append(args, "-A", "scram-sha-256", "--pwfile", file)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = s.Dir, env, attributes(sigKill, as)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(args[0]), err, out)
	}
	return nil
}

// Follow kills a PostgreSQL server and has it begin again as the standby of another one: with a
// copy of that one's data, on its own port. It returns when it serves, which says nothing of how
// far it is behind.
func (s *Server) Follow(ctx context.Context, primary *Server) error {
	s.process.kill()
	sweepPostgres(s)
	s.config.primary = primary
	data := filepath.Join(s.Dir, "data")
	err := os.RemoveAll(data)
	if err == nil {
		err = s.populate(ctx, s.Extra["bin"], data, s.command.as)
	}
	if err == nil {
		err = s.configurePostgres(data, s.command.as)
	}
	if err != nil {
		return err
	}
	return s.start(ctx)
}

func (s *Server) configurePostgres(data string, as *account) error {
	settings := map[string]string{
		"listen_addresses": "127.0.0.1", "port": s.ports[0].String(), "unix_socket_directories": "",
		"dynamic_shared_memory_type": "mmap", // in the data folder, and so gone with it
		"wal_level":                  "replica", "max_wal_senders": "4", "hot_standby": "on", "log_min_messages": "warning",
	}
	if s.config.tls {
		settings["ssl"], settings["ssl_ca_file"] = "on", s.Extra["ca"]
		settings["ssl_cert_file"], settings["ssl_key_file"] = s.Extra["server-cert"], s.Extra["server-key"]
		for _, name := range []string{"ca", "server-cert", "server-key"} {
			if as == nil {
				break
			}
			if err := os.Chown(s.Extra[name], int(as.uid), int(as.gid)); err != nil {
				return err
			}
		}
	}
	for name, value := range s.config.settings {
		settings[name] = value
	}
	for name, value := range settings {
		settings[name] = "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	all := config{settings: settings}
	if err := s.appendTo(filepath.Join(data, "postgresql.conf"), all.lines("%s = %s")); err != nil {
		return err
	}
	method := "trust"
	if s.config.password != "" {
		method = "scram-sha-256"
	}
	line := "host"
	if s.config.tls {
		line = "hostssl"
	}
	if s.config.mutual {
		method += " clientcert=verify-ca"
	}
	rules := fmt.Sprintf("%s all all 127.0.0.1/32 %s\n%s replication all 127.0.0.1/32 %s\n", line, method, line, method)
	return s.writeFor(as, filepath.Join(data, "pg_hba.conf"), rules)
}

// serviceAccount is who the server runs as when this process is root, as which it refuses to run.
// That account can't reach the folders of root's tests, so the server gets a folder of its own.
func (s *Server) serviceAccount() (*account, error) {
	var u *user.User
	var err error
	for _, name := range []string{"postgres", "nobody"} {
		if u, err = user.Lookup(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("it does not run as root, and there is no user postgres: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	as := &account{uint32(uid), uint32(gid)}
	old := s.Dir
	if s.Dir, err = os.MkdirTemp("", "leasehold-postgres-"); err != nil {
		return nil, err
	}
	s.apart = true
	for _, name := range []string{"ca", "cert", "key", "server-cert", "server-key"} {
		if file := s.Extra[name]; file != "" {
			s.Extra[name] = filepath.Join(s.Dir, filepath.Base(file))
			if err := os.Rename(file, s.Extra[name]); err != nil {
				return nil, err
			}
		}
	}
	return as, errors.Join(os.Remove(old), os.Chown(s.Dir, int(as.uid), int(as.gid)))
}

// sweepPostgres takes away the shared memory of a server that was killed: a few bytes, but the
// system has room for a few thousand of them only.
func sweepPostgres(s *Server) {
	text, err := os.ReadFile(filepath.Join(s.Dir, "data", "postmaster.pid"))
	if err != nil {
		return // it had time to tidy up
	}
	const line = 6 // of the segment: its key and its id
	if lines := strings.Split(string(text), "\n"); len(lines) > line {
		if words := strings.Fields(lines[line]); len(words) == 2 {
			// It is gone, or there is no such program: so be it.
			_ = exec.Command("ipcrm", "-m", words[1]).Run()
		}
	}
}

// writeFor writes a file that belongs to the account.
func (s *Server) writeFor(as *account, file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil || as == nil {
		return err
	}
	return os.Chown(file, int(as.uid), int(as.gid))
}

func (s *Server) appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// postgresClient is the plainest client.
type postgresClient struct{}

func (postgresClient) run(ctx context.Context, s *Server, statement string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.Extra["bin"], "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement)
	cmd.Env = os.Environ()
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &complaints)
	}
	return strings.TrimSpace(string(out)), err
}

func (p postgresClient) put(ctx context.Context, s *Server, value string) error {
	_, err := p.run(ctx, s, fmt.Sprintf("CREATE TABLE IF NOT EXISTS t (v text); DELETE FROM t; INSERT INTO t VALUES ('%s')", value))
	return err
}

func (p postgresClient) get(ctx context.Context, s *Server) (string, error) {
	return p.run(ctx, s, "SELECT v FROM t")
}
