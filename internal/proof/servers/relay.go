package servers

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// link is a client's connection and the server's that belongs to it.
type link struct {
	ctx    context.Context // ends when the link is closed
	cancel context.CancelFunc
	client net.Conn
	server net.Conn // nil until the network let the client through
	torn   bool     // something was thrown away
}

func (l *link) close() {
	l.cancel()
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// accept serves the clients that come to one listener.
func (n *Network) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			pause(tick) // out of file descriptors, most likely
			continue
		}
		n.running.Go(func() { n.serve(client, listener) })
	}
}

// serve connects a client with the server and waits until either end is closed.
func (n *Network) serve(client net.Conn, listener net.Listener) {
	l := &link{client: client}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	n.mu.Lock()
	if n.listener == listener {
		n.links[l] = true
	} else {
		l.close() // it came just before the network was told to refuse it
	}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		l.close()
		delete(n.links, l)
	}()
	if !n.passes(l) || !n.dial(l) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { n.relay(l, l.server, l.client, &n.drop) })
	both.Go(func() { n.relay(l, l.client, l.server, &n.swallow) })
	both.Wait()
}

// dial connects to the server. A client whose server can't be reached is reset: it must not take it
// for the end of an answer.
func (n *Network) dial(l *link) bool {
	server, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(l.ctx, "tcp", n.target)
	n.mu.Lock()
	defer n.mu.Unlock()
	if tcp, ok := l.client.(*net.TCPConn); ok && err != nil {
		_ = tcp.SetLinger(0)
	}
	if err != nil {
		return false
	}
	l.server = server
	if l.ctx.Err() != nil {
		l.close() // again, for it had no server before
		return false
	}
	return true
}

// chunk is what was read at once, and when it is due.
type chunk struct {
	data   []byte
	due    context.Context // ends when it is
	cancel context.CancelFunc
}

// relay passes on what one end sends to the other until either is closed. What is thrown away
// depends on *away.
func (n *Network) relay(l *link, to, from net.Conn, away *bool) {
	const underWay = 256 // chunks, while they are delayed
	queue := make(chan chunk, underWay)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(queue)
		n.read(l, from, queue)
	})
	for c := range queue {
		<-c.due.Done()
		c.cancel()
		if !n.passes(l) || c.data == nil {
			break
		}
		if n.thrown(l, away) {
			continue
		}
		if _, err := to.Write(c.data); err != nil {
			break
		}
	}
	n.mu.Lock()
	l.close()
	n.mu.Unlock()
	reader.Wait()
}

// read queues what one end sends, and at last, without data, that it sends no more.
func (n *Network) read(l *link, from io.Reader, queue chan<- chunk) {
	for {
		buffer := make([]byte, 32<<10)
		count, err := from.Read(buffer)
		if count > 0 && !n.queue(l, buffer[:count], queue) {
			return
		}
		if err != nil {
			n.queue(l, nil, queue)
			return
		}
	}
}

// queue sends off a chunk. It reports whether the link is still open.
func (n *Network) queue(l *link, data []byte, queue chan<- chunk) bool {
	n.mu.Lock()
	delay := n.delay
	n.mu.Unlock()
	due, cancel := context.WithTimeout(l.ctx, delay)
	select {
	case queue <- chunk{data, due, cancel}:
		return true
	case <-l.ctx.Done():
		cancel()
		return false
	}
}

// passes waits while the network is cut. It reports whether the link is still open then.
func (n *Network) passes(l *link) bool {
	for {
		n.mu.Lock()
		cut, changed := n.cut, n.changed
		n.mu.Unlock()
		if l.ctx.Err() != nil || !cut {
			return l.ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
		}
	}
}

// thrown reports whether what passes now is thrown away.
func (n *Network) thrown(l *link, away *bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if *away {
		l.torn = true
		n.lost++
	}
	return *away
}
