package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// advice says what to do about an error of the server, by how it begins. %s is the prefix.
var advice = []struct{ begins, hint string }{
	{"NOAUTH", adviceLogin},
	{"WRONGPASS", adviceLogin},
	{"ERR invalid password", adviceLogin},
	{"ERR AUTH", adviceLogin},
	{"NOPERM", adviceRights},
	{"ERR The user executing the script can't", adviceRights}, // Redis 7
	{"ERR ACL failure in script", adviceRights},               // Valkey
	{"READONLY", "this is a replica: name the primary, or use a client for Sentinel or the cluster, which finds it"},
	{"OOM", "the server's memory is full: raise maxmemory or move other data away; don't let it evict leases"},
	{"LOADING", "the server is reading its data: try again"},
	{"MASTERDOWN", "this is a replica that has lost its primary: name the primary"},
	{"CLUSTERDOWN", "the cluster lacks slots: see CLUSTER INFO"},
	{"MOVED", "this is a node of a cluster: use a cluster's client"},
	{"CROSSSLOT", "the client sends several keys at once: use go-redis's own"},
	{"MISCONF", "the server can't write to its disk: see its log"},
	{"NOREPLICAS", "fewer replicas are there than min-replicas-to-write asks"},
	{"BUSY", "another script keeps the server: SCRIPT KILL ends it"},
	{"ERR unknown command", "the server lacks a command or has renamed it: Redis 6 or Valkey with scripts is needed"},
	{"ERR DB index", "name a database that the server has (the URL's path)"},
	{"ERR invalid DB", "name a database that the server has (the URL's path)"},
}

const (
	adviceLogin  = "check the user and the password (the URL, or REDIS_URL)"
	adviceRights = "the user lacks a permission: ACL SETUSER … ~%[1]s* &%[1]s* +evalsha +eval +hget +hmget +hset +hdel +exists +del +time +publish +subscribe +unsubscribe +ping +scan"
)

// explain returns err with what to do about it, where there is something that is known to help.
func explain(err error, prefix string) error {
	var op *net.OpError
	var verify *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	hint := ""
	switch {
	case err == nil:
		return nil
	case isRefusal(err, ""):
		hint = adviseOn(err, prefix)
	case errors.As(err, &verify), errors.As(err, &authority):
		hint = "the server's certificate isn't trusted: name the right authority (cacert), and the server by the name in its certificate"
	case strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		hint = "the server has no TLS on this port: turn it on there, or use redis:// where the network is trusted"
	case strings.Contains(err.Error(), "tls: "):
		hint = "the server refuses this client's TLS: does it ask for a certificate (cert and key)?"
	case errors.Is(err, goredis.ErrPoolTimeout):
		hint = "all connections of the pool are busy: raise PoolSize"
	case errors.As(err, &op) && op.Op == "dial":
		hint = "is the server up, and are host and port right?"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		hint = "the server did not answer in time; if it never does, does the port speak TLS or not (rediss:// or redis://)?"
	case strings.HasPrefix(err.Error(), "redis: can't parse"):
		hint = "what answers there isn't Redis: are host and port right?"
	case errors.Is(err, io.EOF), errors.As(err, &op):
		hint = "the connection broke; if it always does, does the port want TLS (rediss://), or a certificate of this client (cert and key)?"
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}

func adviseOn(err error, prefix string) string {
	var answer goredis.Error
	errors.As(err, &answer)
	for _, a := range advice {
		if strings.HasPrefix(answer.Error(), a.begins) {
			if strings.Contains(a.hint, "%") {
				return fmt.Sprintf(a.hint, prefix)
			}
			return a.hint
		}
	}
	return ""
}
