package etcd

import (
	"fmt"
	"strings"
)

// advice says what to do about an error, by what it says.
var advice = [...]struct{ says, do string }{
	{"permission denied", "the user lacks read and write permission on the prefix: etcdctl role grant-permission ROLE --prefix=true readwrite PREFIX"},
	{"user name is empty", "the server demands a user: give the client a user name and a password, or a certificate with a common name"},
	{"authentication failed", "the user name or the password is wrong"},
	{"invalid auth token", "the client's token has expired and it has no user name to get another with"},
	{"x509: certificate signed by unknown authority", "the server's certificate isn't from a CA that the client trusts: name the CA's file"},
	{"x509: ", "the server's certificate doesn't fit: check the name or address that it was issued for, and its dates"},
	{"certificate required", "the server demands a client certificate: name a certificate and its key"},
	{"bad certificate", "the server doesn't accept the client's certificate: is it from the CA that the server trusts?"},
	{"unknown certificate authority", "the server doesn't accept the client's certificate: is it from the CA that the server trusts?"},
	{"first record does not look like a TLS handshake", "the server speaks plain text: connect without TLS"},
	{"authentication handshake failed: EOF", "the server ended the TLS handshake: if it speaks plain text, connect without TLS"},
	{"error reading server preface", "the server speaks TLS, or isn't etcd: connect with TLS, and check the port"},
	{"database space exceeded", "the database is full: compact and defragment it, then: etcdctl alarm disarm"},
	{"too many requests", "the server is overloaded"},
	{"request is too large", "the server takes only smaller requests: raise its --max-request-bytes to 1.5 MiB"},
	{"no leader", "the cluster has no leader: is a majority of the members up?"},
	{"request timed out", "the cluster was too slow, or has no majority: check its members and disks"},
	{"unknown service etcdserverpb", "what answers isn't an etcd server of version 3"},
	{"connection refused", "no server listens there: is etcd up, and are host and port right?"},
	{"no such host", "the host's name isn't known: is it right?"},
	{"connection reset", "the server can't be reached: is etcd up, and are host and port right?"},
	{"no route to host", "the network doesn't lead there: are host and port right?"},
	{"i/o timeout", "the server can't be reached: are host and port right, and does a firewall let them through?"},
	{"waiting for connections to become ready", "no answer: is etcd up, and does the network let this machine reach it?"},
	{"connection error", "the server can't be reached: is etcd up, and are host and port right?"},
}

// Explain adds to an error of the client what to do about it, where that is known. It is for code
// that dials. The store's own errors are explained already.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, a := range advice {
		if strings.Contains(text, a.do) {
			return err // it was explained
		}
		if strings.Contains(text, a.says) {
			return fmt.Errorf("%w: %s", err, a.do)
		}
	}
	return err
}
