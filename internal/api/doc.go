// Package api is the one JSON form of leases, elections and identities. The lock server's requests
// and answers have it as their bodies, the command writes it with -o json, and the server's page
// reads it. The package also has one table of problems. The table turns an error into an answer on
// one side, and the answer into the same error on the other.
//
// docs/json.md is made from the types and their comments. server/openapi.yaml is checked against
// them.
package api
