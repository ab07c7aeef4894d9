package consul

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/store/driver"
)

// errStranger says that an answer has no index, which every one of Consul's to a read has: another
// server's, or a proxy's, that there is no such page would be taken for a key that isn't stored.
var errStranger = errors.New("the answer has no X-Consul-Index")

// strangerAdvice is for an answer that Consul doesn't give.
const strangerAdvice = "what answers there isn't Consul's HTTP API: are host and port right (8500 as a rule)?"

// noLeader is what a server says that knows of no leader, or of none that can reach a majority.
const noLeader = "No cluster leader"

func leaderless(err error) bool {
	var status api.StatusError
	return errors.As(err, &status) && strings.Contains(status.Body, noLeader)
}

// statusClientClosed is what a proxy, or Consul, says of a request whose client it takes for gone.
// As with 408, the server may have been given it.
const statusClientClosed = 499

// refused reports whether the error of a request means that the server did not and will not do it.
func refused(err error) bool {
	var status api.StatusError
	if !errors.As(err, &status) {
		return false
	}
	// Consul says itself that it is always safe to try again where there is no leader: nothing was
	// given to Raft.
	return status.Code/100 == 4 && status.Code != http.StatusRequestTimeout && status.Code != statusClientClosed || leaderless(err)
}

// failed returns the error of a request, for people: what to do about it. It matches the cause of
// ctx when that has ended.
func (s *Store) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("consul did not answer in time: %w", context.Cause(ctx))
	}
	if advice := s.advice(err); advice != "" {
		return fmt.Errorf("%s: %w", advice, err)
	}
	return fmt.Errorf("consul: %w", err)
}

// advice says what to do about the error of a request, or nothing.
func (s *Store) advice(err error) string {
	var (
		status api.StatusError
		record tls.RecordHeaderError
		cert   *tls.CertificateVerificationError
		name   x509.HostnameError
		op     *net.OpError
	)
	switch {
	case errors.As(err, &status):
		return s.statusAdvice(status)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "consul answers, but without TLS: ask it by http, or at its HTTPS port (8501 as a rule)"
	case errors.As(err, &name):
		return "consul's certificate is for another name: connect by a name that is in it, or say which one to expect (CONSUL_TLS_SERVER_NAME)"
	case errors.As(err, &cert):
		return "consul's certificate isn't signed by an authority that this machine trusts: name the file of the one that is (CONSUL_CACERT)"
	case errors.As(err, &op) && op.Op == "remote error": // so does crypto/tls call an alert
		return "consul refuses the TLS connection: it may want a certificate of yours (CONSUL_CLIENT_CERT and CONSUL_CLIENT_KEY)"
	case errors.Is(err, errStranger):
		return strangerAdvice
	case errors.As(err, &op) && op.Op == "dial":
		return "consul can't be reached: is an agent running there, and does the network let this machine reach it?"
	case errors.Is(err, io.EOF), strings.Contains(err.Error(), "malformed HTTP"):
		return "the connection broke, or no HTTP came; if it is always so, are host and port right (8500 as a rule)?"
	}
	return ""
}

func (s *Store) statusAdvice(status api.StatusError) string {
	switch {
	case strings.Contains(status.Body, "ACL not found"):
		return "consul doesn't know the token: was it deleted, or is it of another datacenter?"
	case status.Code == http.StatusForbidden || strings.Contains(status.Body, "Permission denied"):
		return fmt.Sprintf("consul refuses this token: give it a policy with key_prefix %q { policy = \"write\" }", s.prefix)
	case status.Code == http.StatusBadRequest && strings.Contains(status.Body, "HTTPS server"):
		return "consul speaks TLS at this port: ask it by https"
	case status.Code == http.StatusRequestEntityTooLarge:
		return "consul takes no request of this size: raise limits.txn_max_req_len and limits.kv_max_value_size to 128 KiB at least"
	case status.Code == http.StatusTooManyRequests:
		return "consul's rate limit is reached: raise limits.request_limits, or ask less often"
	case strings.Contains(status.Body, noLeader):
		return "consul has no leader: a majority of the datacenter's servers has to be up and to reach one another"
	case strings.Contains(status.Body, "No path to datacenter"):
		return "consul knows no datacenter of that name"
	case status.Code == http.StatusNotFound || status.Code == http.StatusMethodNotAllowed:
		return strangerAdvice
	}
	return ""
}

// outcome returns the error of a write to key that was not acknowledged. sent is whether the
// request got a connection.
func (s *Store) outcome(ctx context.Context, key string, sent bool, err error) error {
	told := fmt.Errorf("%s: %w", key, s.failed(ctx, err))
	if !sent || refused(err) {
		return told
	}
	return driver.Unknown(key, s.failed(ctx, err))
}
