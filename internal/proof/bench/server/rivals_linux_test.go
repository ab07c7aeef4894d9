package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// locker is one client of a lock server. lock waits, for minutes; its answer is what unlock needs.
type locker interface {
	lock(name string) (term string, err error)
	unlock(name, term string) error
}

// rival is a lock server that can be started. It returns how a client connects.
type rival struct {
	name  string
	start func(b *testing.B) (connect func(w *wire) (locker, error), addr string, process int)
}

// The last of them is none: it does nothing.
var rivals = []rival{{"leasehold", startLeasehold}, {"rdlm", startRDLM}, {"etcd", startEtcd}, {"redis", startRedis}, {"nothing", startNothing}}

type leaseholdClient struct{ *wire }

func startLeasehold(b *testing.B) (func(*wire) (locker, error), string, int) {
	s := serve(b, b.TempDir(), "127.0.0.1:0")
	return func(w *wire) (locker, error) { return leaseholdClient{w}, nil }, s.addr, s.cmd.Process.Pid
}

func (c leaseholdClient) lock(name string) (string, error) {
	r, err := c.ask("POST", "/v1/leases/"+name, "", `{"ttl": 60, "wait": 600}`)
	return "Leasehold-Sequencer: " + r.sequencer + "\r\nLeasehold-Secret: " + r.secret + "\r\n", err
}

func (c leaseholdClient) unlock(name, term string) error {
	_, err := c.ask("DELETE", "/v1/leases/"+name, term, "")
	return err
}

type rdlmClient struct{ *wire }

// startRDLM starts RDLM itself, which scripts/rdlm-server installs.
func startRDLM(b *testing.B) (func(*wire) (locker, error), string, int) {
	dir, err := servers.Cache()
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp4", ":0") //nolint:noctx,gosec // a port that is free on all addresses: RDLM takes them all
	if err != nil {
		b.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	_ = l.Close()
	addr := "127.0.0.1:" + port
	program := filepath.Join(filepath.Dir(dir), "rdlm-server", "rdlm")
	cmd := exec.CommandContext(context.Background(), program, "--port="+port, "--logging=error")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		b.Skipf("skipped: %v: run scripts/rdlm-server", err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(b, "RDLM listens", time.Minute, func() bool {
		w, err := dial(b.Context(), addr)
		if err == nil {
			w.close()
		}
		return err == nil
	})
	return func(w *wire) (locker, error) { return rdlmClient{w}, nil }, addr, cmd.Process.Pid
}

func (c rdlmClient) lock(name string) (string, error) {
	r, err := c.ask("POST", "/locks/"+name, "", `{"title": "t", "wait": 600, "lifetime": 60}`)
	_, path, _ := strings.Cut(strings.TrimPrefix(r.location, "http://"), "/")
	return "/" + path, err
}

func (c rdlmClient) unlock(_, term string) error {
	_, err := c.ask("DELETE", term, "", "")
	return err
}

// etcdClient uses the lock service of etcd's gateway, with one lease for all its locks: without one each lock makes its own.
type etcdClient struct {
	*wire
	lease string
}

func startEtcd(b *testing.B) (func(*wire) (locker, error), string, int) {
	s := servers.Etcd(b)
	return func(w *wire) (locker, error) {
		r, err := w.ask("POST", "/v3/lease/grant", "", `{"TTL": 3600}`)
		var lease struct{ ID string }
		if err == nil {
			err = json.Unmarshal(r.body, &lease)
		}
		return etcdClient{w, lease.ID}, err
	}, s.Addr, 0
}

func (c etcdClient) lock(name string) (string, error) {
	r, err := c.ask("POST", "/v3/lock/lock", "", fmt.Sprintf(`{"name": %q, "lease": %q}`, base64.StdEncoding.EncodeToString([]byte(name)), c.lease))
	var lock struct{ Key string }
	if err == nil {
		err = json.Unmarshal(r.body, &lock)
	}
	return lock.Key, err
}

func (c etcdClient) unlock(_, term string) error {
	_, err := c.ask("POST", "/v3/lock/unlock", "", fmt.Sprintf(`{"key": %q}`, term))
	return err
}

// redisClient is the usual recipe: SET NX PX, asked again every 10 ms, and a script that deletes one's own.
type redisClient struct {
	*wire
	id string
}

func startRedis(b *testing.B) (func(*wire) (locker, error), string, int) {
	s := servers.Redis(b, servers.Set("appendonly", "yes"), servers.Set("appendfsync", "always"))
	return func(w *wire) (locker, error) { return redisClient{w, w.conn.LocalAddr().String()}, nil }, s.Addr, 0
}

const redisPoll = 10 * time.Millisecond

// command sends a command and returns the first line of the answer, in the protocol's own words.
func (c redisClient) command(words ...string) (string, error) {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := c.conn.Write([]byte(text)); err != nil {
		return "", err
	}
	line, err := c.in.ReadString('\n')
	line = strings.TrimSpace(line)
	if err == nil && strings.HasPrefix(line, "-") {
		err = fmt.Errorf("%s: %s", words[0], line)
	}
	return line, err
}

func (c redisClient) lock(name string) (string, error) {
	for {
		line, err := c.command("SET", name, c.id, "NX", "PX", "60000")
		if err != nil || line == "+OK" {
			return c.id, err
		}
		time.Sleep(redisPoll)
	}
}

func (c redisClient) unlock(name, term string) error {
	const script = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`
	line, err := c.command("EVAL", script, "1", name, term)
	if err == nil && line != ":1" {
		err = fmt.Errorf("EVAL: %s", line)
	}
	return err
}
