package servers

import "context"

// client keeps one value on a server, by the plainest means there are. By it the tests prove which
// faults of a server a test can make.
type client interface {
	put(ctx context.Context, s *Server, value string) error
	get(ctx context.Context, s *Server) (string, error)
}
