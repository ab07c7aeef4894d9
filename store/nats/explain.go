package nats

import (
	"fmt"
	"strings"
)

// advice says what to do about an error, by what it says.
var advice = []struct{ says, do string }{
	{"stream not found", "the bucket isn't there any more"},
	{"bucket already exists", "it has other settings: use it as it is, or give the new one another name"},
	{"stream name already in use", "it has other settings: use it as it is, or give the new one another name"},
	{"invalid bucket name", "want letters, digits, - and _"},
	{"bad bucket", "its stream isn't a key-value bucket: name another one"},
	{"insufficient resources", "the servers are too few for the replicas, or out of space"},
	{"no suitable peers", "the servers are too few for the replicas"},
	{"replicas > 1 not supported", "the server isn't part of a cluster: use 1 replica"},
	{"jetstream not enabled", "turn JetStream on: jetstream {} in the server's configuration, and for the account"},
	{"no responders", "JetStream isn't on, for this account or at all, or the bucket has no leader just now"},
	{"no response from stream", "the bucket has no leader just now, or isn't there any more"},
	{"Permissions Violation", "the user lacks a permission: see the package's documentation for the subjects"},
	{"permissions violation", "the user lacks a permission: see the package's documentation for the subjects"},
	{"maximum bytes exceeded", "the bucket is full: raise its max bytes"},
	{"Authorization Violation", "the server demands a user, or refuses this one: check user, password, token or credentials file"},
	{"authorization violation", "the server demands a user, or refuses this one: check user, password, token or credentials file"},
	{"x509: certificate signed by unknown authority", "the server's certificate isn't from a CA that the client trusts: name the CA's file"},
	{"x509: ", "the server's certificate doesn't fit: check the name or address that it was issued for, and its dates"},
	{"certificate required", "the server demands a client certificate: name a certificate and its key"},
	{"bad certificate", "the server doesn't accept the client's certificate: is it from the CA that the server trusts?"},
	{"unknown certificate authority", "the server doesn't accept the client's certificate: is it from the CA that the server trusts?"},
	{"closed by remote after TLS handshake", "it demands a client certificate, or doesn't accept the client's certificate: is it from the CA that the server trusts?"},
	{"secure connection not available", "the server speaks plain text: connect without TLS"},
	{"connection refused", "no server listens there: is NATS up, and are host and port right?"},
	{"no servers available", "no server answers: is NATS up, and are host and port right?"},
	{"no such host", "the host's name isn't known: is it right?"},
	{"i/o timeout", "no server answers there: is it NATS, and are host and port right?"},
	{"connection closed", "it was closed by the program, or gave up: use MaxReconnects(-1)"},
	{"the connection is", "is the server up, and can it be reached?"},
}

// Explain adds to an error of the client what to do about it, where that is known. It is for code
// that dials. The store's own errors are explained already.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, a := range advice {
		if strings.Contains(text, a.says) {
			return fmt.Errorf("%w: %s", err, a.do)
		}
	}
	return err
}
