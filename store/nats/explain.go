package nats

import (
	"fmt"
	"strings"
)

// advice says what to do about an error, by what it says.
var advice = []struct{ says, do string }{
	{"bucket not found", "make it: nats kv add BUCKET --history=1 --replicas=3"},
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
	{"connection closed", "it was closed by the program, or gave up: use MaxReconnects(-1)"},
	{"the connection is", "is the server up, and can it be reached?"},
}

// explain adds to err what to do about it, where that is known.
func explain(err error) error {
	text := err.Error()
	for _, a := range advice {
		if strings.Contains(text, a.says) {
			return fmt.Errorf("%w: %s", err, a.do)
		}
	}
	return err
}
