package server

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
)

// Caller is the sender of a request.
type Caller interface {
	// Name is the caller's name, for the audit log and as the default holder; "" for an unknown
	// caller.
	Name() string
	// May reports whether the caller may do that action to the name. If the name ends in "*", it is
	// about all names with that beginning. For "" it reports whether there is any name that the
	// caller may do that to.
	May(action Action, name string) bool
}

// Anybody is a caller without a name that may do everything.
var Anybody Caller = anybody{}

type anybody struct{}

func (anybody) Name() string { return "" }

func (anybody) May(Action, string) bool { return true }

// ErrAuthUnavailable is the error of [Options.Authenticate] when it can't identify the caller now.
// It does not say that the caller is wrong.
var ErrAuthUnavailable = errors.New("it can't be found out now who calls")

// admit finds out who calls, and whether it may do that. Handlers of what isn't named by the path
// ask [call.may] themselves; who uses a session has to be allowed to take something.
func (s *Server) admit(rt route, c *call) error {
	if rt.op == opLogins {
		c.caller, c.payer = nobody{}, payer(Anybody, c.event.Remote)
		return s.rates.take(c.payer)
	}
	caller, err := s.opts.Authenticate(c.r)
	if err != nil { // it is nobody's request, so it is its address's
		if late := s.rates.take(payer(Anybody, c.event.Remote)); late != nil {
			return late
		}
	}
	switch {
	case errors.Is(err, ErrAuthUnavailable):
		return api.NewProblem(api.CodeAuthUnavailable, "%v", err)
	case err != nil:
		return api.NewProblem(api.CodeUnauthenticated, "%v", err)
	}
	c.caller, c.event.Caller, c.payer = caller, caller.Name(), payer(caller, c.event.Remote)
	if err := s.rates.take(c.payer); err != nil {
		return err
	}
	if name := c.r.PathValue("name"); name != "" {
		if keyspace.Reserved(name) {
			return reserved(name)
		}
		return c.may(rt.action, name)
	}
	return nil
}

func (c *call) may(action Action, name string) error {
	if c.caller.May(action, name) {
		return nil
	}
	who := c.caller.Name()
	if who == "" {
		who = "an unknown caller"
	}
	return api.NewProblem(api.CodeForbidden, "%s may not %s %s", who, action, name)
}

// payer is whom a request from that address is counted for: who is known is the same from
// everywhere.
func payer(caller Caller, remote string) string {
	if name := caller.Name(); name != "" {
		return "caller " + name
	}
	return "address " + remote
}

// forwarded is the header in which each proxy writes down, behind what is there, whom it was asked
// by.
const forwarded = "X-Forwarded-For"

// remote is the address that a request comes from: of the hops that trusted proxies tell of, the
// last one that is no trusted proxy. What stands before that is what the client says of itself.
func (s *Server) remote(r *http.Request) string {
	peer := r.RemoteAddr
	if host, _, err := net.SplitHostPort(peer); err == nil {
		peer = host
	}
	if len(s.opts.TrustedProxies) == 0 || !s.trusted(peer) {
		return peer
	}
	hops := strings.Split(strings.Join(r.Header.Values(forwarded), ","), ",")
	for _, hop := range slices.Backward(hops) {
		addr, ok := hopOf(hop)
		if !ok {
			return peer // what no proxy writes
		}
		if peer = addr.String(); !s.trusted(peer) {
			return peer
		}
	}
	return peer
}

// hopOf reads an address, which may have a port.
func hopOf(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if addr, err := netip.ParseAddrPort(text); err == nil {
		return addr.Addr().Unmap(), true
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return addr.Unmap(), err == nil
}

func (s *Server) trusted(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(s.opts.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
}
