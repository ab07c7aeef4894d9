//go:build lite

package open

// atServers returns the kinds of store that are behind a server. The build with the tag lite links
// no client that is larger than what the rest of the program is.
func atServers() []Scheme {
	return []Scheme{etcdScheme, postgresScheme, postgresqlScheme, redisScheme, redissScheme, httpScheme, httpsScheme}
}

// absent names the schemes that this build lacks, with what each is.
var absent = map[string]string{"consul": "Consul", "zk": "ZooKeeper", "k8s": "Kubernetes", "nats": "NATS", "dynamodb": "DynamoDB"}

// silent reports whether an error of a client library says that nobody answers.
func silent(error) bool { return false }
