// Package api is the one JSON form of leases, elections and identities: the bodies of the lock server's requests and answers, what the
// command writes with -o json, and what the server's page reads. It also has one table of problems, which turns an error into an answer on
// one side and the answer into the same error on the other.
//
// docs/json.md is made from the types and from what their comments say. server/openapi.yaml is checked against them.
package api
