package open

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"syscall"
)

// starting are PostgreSQL's codes for a server that starts, ends or recovers just now.
var starting = []string{"57P01", "57P02", "57P03"}

// Unreachable reports whether an error of [URL.Open] says that nobody answers there now. Waiting
// may mend that. Waiting mends no certificate or password that is refused, no bucket or table that
// doesn't exist, and no wrong URL. For these Unreachable returns false.
func Unreachable(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
		header      tls.RecordHeaderError
		refusal     interface{ SQLState() string } // of PostgreSQL
		network     net.Error
		number      syscall.Errno
		name        *net.DNSError
	)
	switch {
	case err == nil, errors.As(err, &certificate), errors.As(err, &alert), errors.As(err, &header):
		return false
	case errors.As(err, &refusal):
		return slices.Contains(starting, refusal.SQLState())
	case silent(err), errors.Is(err, context.DeadlineExceeded), errors.As(err, &name):
		return true
	case errors.As(err, &number):
		return slices.Contains([]syscall.Errno{
			syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ETIMEDOUT, syscall.EPIPE,
		}, number)
	}
	return errors.As(err, &network) && network.Timeout()
}

// silent reports whether an error of a client library says that nobody answers.
func silent(err error) bool {
	return slices.ContainsFunc(registered, func(s Scheme) bool { return s.silent != nil && s.silent(err) })
}
