//go:build !lite

package open

import (
	"errors"

	natsgo "github.com/nats-io/nats.go"
)

// atServers returns the kinds of store that are behind a server.
func atServers() []Scheme {
	return []Scheme{
		etcdScheme,
		consulScheme,
		zooKeeperScheme,
		kubernetesScheme,
		postgresScheme,
		postgresqlScheme,
		redisScheme,
		redissScheme,
		natsScheme,
		dynamoDBScheme,
		httpScheme,
		httpsScheme,
	}
}

// absent names the schemes that this build lacks, with what each is.
var absent map[string]string

// silent reports whether an error of a client library says that nobody answers.
func silent(err error) bool {
	return errors.Is(err, natsgo.ErrNoServers) || errors.Is(err, natsgo.ErrTimeout)
}
