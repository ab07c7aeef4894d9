// Package api is what the lock server and its clients say to each other: the bodies of requests and answers, and one table of
// problems that turns an error into an answer on one side and the answer into the same error on the other.
package api
