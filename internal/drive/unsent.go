package drive

import (
	"context"
	"net/http/httptrace"
	"sync"
)

// unsent are those copies of a request that wait for a connection of an HTTP client. They are given
// up when the first byte of an answer to another copy has come. Else they would take the connection
// that this answer leaves, which the next request needs: a new connection takes several round
// trips. No connection is closed by that. The zero value is ready for use.
type unsent struct {
	mu      sync.Mutex
	waiting map[*context.CancelFunc]struct{}
}

// watch returns the context for one copy. Call cancel when the copy has ended.
func (u *unsent) watch(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			u.mu.Lock()
			defer u.mu.Unlock()
			if u.waiting == nil {
				u.waiting = map[*context.CancelFunc]struct{}{}
			}
			u.waiting[&cancel] = struct{}{}
		},
		GotConn: func(httptrace.GotConnInfo) {
			u.mu.Lock()
			defer u.mu.Unlock()
			delete(u.waiting, &cancel)
		},
		GotFirstResponseByte: u.answered,
	}), cancel
}

// answered gives up those that wait.
func (u *unsent) answered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for cancel := range u.waiting {
		(*cancel)()
	}
}
