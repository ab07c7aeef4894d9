package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/internal/enginekit/inspect"
	"github.com/leasehold/leasehold/store/driver"
)

// inspectWithin bounds the trial of what a lease does.
const inspectWithin = 10 * time.Second

// Inspect implements [driver.Inspector]. It writes, reads and deletes a record of its own, whose
// key begins with ".doctor/".
func (s *Store) Inspect(ctx context.Context) []driver.Finding {
	if err := s.session(ctx); err != nil {
		return []driver.Finding{{
			What: "connection", Status: driver.StatusFail, Detail: err.Error(),
			Advice: "start ZooKeeper, or correct its address; an ensemble needs a majority of its servers",
		}}
	}
	findings := []driver.Finding{
		{What: "connection", Status: driver.StatusOK, Detail: fmt.Sprintf("%s, session %#x", s.conn.Server(), s.conn.SessionID())},
		s.inspectServer(ctx),
	}
	findings = append(findings, s.inspectRoot(ctx))
	return append(findings, s.inspectWrites(ctx)...)
}

// inspectServer says what the server says about itself, to whoever asks.
func (s *Store) inspectServer(ctx context.Context) driver.Finding {
	facts, err := srvr(ctx, s.conn.Server())
	if err != nil {
		return driver.Finding{
			What: "server", Status: driver.StatusOK, Detail: "it doesn't say its version and mode: " + err.Error(),
			Advice: "to see them here, let the servers answer srvr on their plain port: 4lw.commands.whitelist=srvr",
		}
	}
	f := driver.Finding{What: "server", Status: driver.StatusOK, Detail: fmt.Sprintf("version %s, %s", facts["Zookeeper version"], facts["Mode"])}
	if facts["Mode"] == "standalone" {
		f.Status = driver.StatusWarn
		f.Advice = "no lease can be renewed while this one server is down, and none is remembered beyond its disk: run three or five"
	}
	return f
}

// srvr asks the server at addr for its facts, by the command of that name.
func srvr(ctx context.Context, addr string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return nil, err
	}
	const most = 64 << 10
	answer, err := io.ReadAll(io.LimitReader(conn, most))
	if err != nil {
		return nil, err
	}
	facts := map[string]string{}
	for line := range strings.Lines(string(answer)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			facts[name] = value
		}
	}
	if facts["Mode"] == "" {
		return nil, fmt.Errorf("it answered %.60q", answer)
	}
	return facts, nil
}

// inspectRoot says who may use the root.
func (s *Store) inspectRoot(ctx context.Context) driver.Finding {
	f := driver.Finding{What: "root", Status: driver.StatusOK}
	acl, err := call(ctx, s, func(conn *zk.Conn) ([]zk.ACL, error) {
		acl, _, err := conn.GetACL(s.root)
		return acl, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		f.Detail = s.root + " isn't there yet: the first record makes it"
	case err != nil:
		f.Status, f.Detail = driver.StatusWarn, s.readError(s.root, err).Error()
	default:
		f.Detail = s.root
		for _, a := range acl {
			if a.Scheme == "world" && a.Perms&(zk.PermCreate|zk.PermDelete|zk.PermWrite) != 0 {
				f.Status = driver.StatusWarn
				f.Detail += ": anybody who reaches the server may change its leases"
				f.Advice = "use an account (auth=digest:USER:PASSWORD) with a root that was made by it"
			}
		}
	}
	return f
}

// inspectWrites tries what a lease does, and says who did it.
func (s *Store) inspectWrites(ctx context.Context) []driver.Finding {
	var identity []driver.Finding
	found := inspect.Trial{
		Store: s, Within: inspectWithin, Reads: "reads behind a round of the quorum",
		Advice: "give this account crwd on " + s.root + " and what is below",
		Stored: func(ctx context.Context, key string) error {
			identity = append(identity, s.inspectIdentity(ctx, s.node(key)))
			return nil
		},
	}.Run(ctx)
	return append(identity, found...)
}

// inspectIdentity says who the server takes us for: it replaces the scheme "auth" in a new znode's
// list of accounts by those of the connection. The znode is below parent, and goes with the session
// at the latest.
func (s *Store) inspectIdentity(ctx context.Context, parent string) driver.Finding {
	f := driver.Finding{What: "identity", Status: driver.StatusOK}
	path := parent + "/" + rand.Text()
	acl, err := call(ctx, s, func(conn *zk.Conn) ([]zk.ACL, error) {
		if _, err := conn.Create(path, nil, zk.FlagEphemeral, zk.AuthACL(zk.PermAll)); err != nil {
			return nil, err
		}
		acl, _, err := conn.GetACL(path)
		return acl, errors.Join(err, conn.Delete(path, -1))
	})
	var names []string
	for _, a := range acl {
		if a.Scheme == "digest" { // what follows is made of the password
			a.ID, _, _ = strings.Cut(a.ID, ":")
		}
		names = append(names, a.Scheme+":"+a.ID)
	}
	switch {
	case errors.Is(err, zk.ErrInvalidACL):
		f.Detail = "nobody in particular: the connection has no account"
	case err != nil:
		f.Status, f.Detail = driver.StatusWarn, s.readError(path, err).Error()
	default:
		slices.Sort(names) // the server keeps no order
		f.Detail = strings.Join(names, ", ")
	}
	return f
}
