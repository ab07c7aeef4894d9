package open

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A store that nobody answers for is worth waiting for; one that refuses isn't.
func TestFinding_L6_WhatIsWorthWaitingFor(t *testing.T) {
	dial := func(err error) error { return fmt.Errorf("open: %w", &net.OpError{Op: "dial", Err: err}) }
	for _, err := range []error{
		dial(syscall.ECONNREFUSED), dial(syscall.EHOSTUNREACH), dial(&net.DNSError{IsNotFound: true}), context.DeadlineExceeded,
		fmt.Errorf("open: %w", &pgconn.PgError{Code: "57P03"}),
	} {
		if !Unreachable(err) {
			t.Errorf("%v isn't waited for", err)
		}
	}
	for _, err := range []error{
		nil, errors.New("a URL"), dial(syscall.EACCES), fmt.Errorf("open: %w", &pgconn.PgError{Code: "28P01"}),
		fmt.Errorf("%w: %w", context.DeadlineExceeded, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
	} {
		if Unreachable(err) {
			t.Errorf("%v is waited for", err)
		}
	}
}

// On every engine an address at which nobody listens is either no error of Open, or one that is worth waiting for.
func TestFinding_L6_NobodyListens(t *testing.T) {
	noEnv(t, natsEnv...)
	for _, s := range registered {
		if s.port == "" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			u, err := Parse(s.Name + "://127.0.0.1:1/0") // 0 is a database, a bucket, a prefix
			if err != nil {
				t.Fatal(err)
			}
			st, err := u.Open(t.Context(), Options{})
			if err != nil && !Unreachable(err) {
				t.Errorf("%v isn't waited for", err)
			}
			if st != nil {
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
