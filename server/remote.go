package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

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
