package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/inspect"
	"github.com/leasehold/leasehold/store/driver"
)

// inspectWithin bounds the trial of what a lease does.
const inspectWithin = 10 * time.Second

// Inspect implements [driver.Inspector]. It writes and deletes one record of its own. Of a cluster
// it sees one node.
func (s *Store) Inspect(ctx context.Context) []driver.Finding {
	findings := s.tryOut(ctx)
	info, err := s.info(ctx)
	if err != nil {
		return append(findings, driver.Finding{
			What: "server", Status: driver.StatusWarn, Detail: "INFO: " + err.Error(),
			Advice: "check by hand: maxmemory-policy (no allkeys-…), appendonly yes, appendfsync always",
		})
	}
	findings = append(findings, server(info), role(info), eviction(info), s.persistence(ctx, info), s.replication(info))
	if who, err := s.text(ctx, "acl", "whoami"); err == nil {
		findings = append(findings, driver.Finding{What: "identity", Status: driver.StatusOK, Detail: "user " + who})
	}
	return append(findings, s.clock(ctx))
}

// text returns the answer to a command that answers in text.
func (s *Store) text(ctx context.Context, args ...any) (string, error) {
	cmd := goredis.NewCmd(ctx, args...)
	if err := s.wait(ctx, func() { _ = s.client.Process(ctx, cmd) }); err != nil {
		return "", err
	}
	text, err := cmd.Text()
	if err != nil {
		return "", s.failed(ctx, err)
	}
	return text, nil
}

func (s *Store) info(ctx context.Context) (map[string]string, error) {
	text, err := s.text(ctx, "info")
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// tryOut does what a lease does.
func (s *Store) tryOut(ctx context.Context) []driver.Finding {
	return inspect.Trial{Store: s, Within: inspectWithin, Reads: "reads by the primary", List: true}.Run(ctx)
}

func server(info map[string]string) driver.Finding {
	f := driver.Finding{What: "server", Status: driver.StatusOK, Detail: "Redis " + info["redis_version"]}
	if v := info["valkey_version"]; v != "" {
		f.Detail = "Valkey " + v
	}
	if info["redis_mode"] != "" || info["server_mode"] != "" {
		f.Detail += ", " + info["redis_mode"] + info["server_mode"]
	}
	major, _, _ := strings.Cut(info["redis_version"], ".")
	if n, err := strconv.Atoi(major); err == nil && n < 6 {
		f.Status, f.Advice = driver.StatusWarn, "it is tried with Redis 7 and Valkey 8, and made for 6 and later"
	}
	return f
}

func role(info map[string]string) driver.Finding {
	f := driver.Finding{What: "role", Status: driver.StatusOK, Detail: info["role"]}
	if info["role"] == "slave" {
		f.Status, f.Detail, f.Advice = driver.StatusFail, "a replica", "name the primary, or use a client for Sentinel or the cluster"
	}
	return f
}

// eviction: a server that may evict any key may evict one that says who holds a name.
func eviction(info map[string]string) driver.Finding {
	policy, limit := info["maxmemory_policy"], info["maxmemory"]
	f := driver.Finding{What: "eviction", Status: driver.StatusOK, Detail: fmt.Sprintf("maxmemory-policy %s, maxmemory %s", policy, limit)}
	if strings.HasPrefix(policy, "allkeys-") {
		f.Status, f.Advice = driver.StatusFail, "set maxmemory-policy noeviction or volatile-…: a lease that is evicted is free while somebody holds it"
		if limit == "0" {
			f.Status = driver.StatusWarn // it evicts nothing while there is no limit
		}
	}
	return f
}

func (s *Store) persistence(ctx context.Context, info map[string]string) driver.Finding {
	f := driver.Finding{What: "durability", Status: driver.StatusWarn}
	if info["aof_enabled"] != "1" {
		f.Detail, f.Advice = "no append-only file: a restart forgets what came after the last snapshot", "set appendonly yes and appendfsync always"
		return f
	}
	cmd := goredis.NewCmd(ctx, "config", "get", "appendfsync")
	err := s.wait(ctx, func() { _ = s.client.Process(ctx, cmd) })
	if err == nil {
		err = cmd.Err()
	}
	switch policy := last(cmd, err); policy {
	case "":
		f.Detail, f.Advice = fmt.Sprintf("an append-only file; how it is synced can't be seen: %v", err), "make sure of appendfsync always"
	case "always":
		f.Status, f.Detail = driver.StatusOK, "an append-only file, synced before each answer"
	default:
		f.Detail, f.Advice = "an append-only file with appendfsync "+policy+": a crash of the machine may lose the last writes", "set appendfsync always"
	}
	return f
}

// last returns the value of a CONFIG GET of one parameter, in either version of the protocol.
func last(cmd *goredis.Cmd, err error) string {
	if err != nil {
		return ""
	}
	switch v := cmd.Val().(type) {
	case []any:
		if len(v) == 2 {
			text, _ := v[1].(string)
			return text
		}
	case map[any]any:
		for _, value := range v {
			text, _ := value.(string)
			return text
		}
	}
	return ""
}

func (s *Store) replication(info map[string]string) driver.Finding {
	n := info["connected_slaves"]
	f := driver.Finding{What: "replication", Status: driver.StatusOK, Detail: n + " replicas"}
	if n != "" && n != "0" && s.opts.Replicas == 0 {
		f.Status = driver.StatusWarn
		f.Detail += ", and writes don't wait for them: a failover may lose the last ones"
		f.Advice = "ask for acknowledgements of replicas (replicas=1), and let what is guarded refuse older tokens"
	}
	if want, err := strconv.Atoi(n); err == nil && want < s.opts.Replicas {
		f.Status, f.Advice = driver.StatusFail, fmt.Sprintf("%d have to acknowledge each write: attach more, or ask for fewer", s.opts.Replicas)
	}
	return f
}

// clock tells how the server's wall clock compares with the one here. Only Age depends on it.
func (s *Store) clock(ctx context.Context) driver.Finding {
	clk := clock.System()
	asked, before := clk.Now(), clk.Wall()
	cmd := goredis.NewTimeCmd(ctx, "time")
	err := s.wait(ctx, func() { _ = s.client.Process(ctx, cmd) })
	if err == nil {
		err = cmd.Err()
	}
	if err != nil {
		return driver.Finding{What: "clock", Status: driver.StatusWarn, Detail: err.Error()}
	}
	trip := clk.Now().Sub(asked)
	offset := cmd.Val().Sub(before.Add(trip / 2))
	return inspect.Clock(offset, trip, s.opts.ClockStep)
}
