package postgres

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

const adviceReadOnly = "name the primary, or all hosts and target_session_attrs=read-write"

// advice says what to do about an error of the server, by SQLSTATE. %s is the table.
var advice = map[string]string{
	codeReadOnly: adviceReadOnly,
	"42P01":      "there is no table %s: make it with leasehold init postgres or postgres.Create, or name the right one",
	"3F000":      "the schema of %s doesn't exist: make it, or name another one",
	"42501":      "the role lacks a permission: GRANT SELECT, INSERT, UPDATE, DELETE ON %s, and USAGE on its schema; to make the table, CREATE on its schema",
	"42703":      "%s is not a table of Leasehold's: name another one",
	"42P10":      "%s has no unique key: make the table with leasehold init postgres",
	"28P01":      "check the user and the password (the URL, PGUSER and PGPASSWORD, or ~/.pgpass)",
	"28000":      "the server doesn't let this user in from here, or not without TLS: check the user, sslmode and the server's pg_hba.conf",
	"3D000":      "name a database that exists (the URL's path, or PGDATABASE)",
	"53300":      "the server has no connection left: make the pools smaller, or raise max_connections",
	"42704":      "neither the client nor the server knows that parameter: take it out of the URL",
	"57P03":      "the server is starting up or shutting down: try again",
}

// explain returns err with what to do about it, where there is something that is known to help.
func explain(err error, table string) error {
	if err == nil {
		return nil
	}
	var p *pgconn.PgError
	var connect *pgconn.ConnectError
	var op *net.OpError
	var verify *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	hint := ""
	switch {
	case errors.As(err, &p):
		if hint = advice[p.Code]; strings.Contains(hint, "%s") {
			hint = fmt.Sprintf(hint, table)
		}
	case errors.Is(err, errReadOnly), strings.Contains(err.Error(), "read only connection"), strings.Contains(err.Error(), "server is in hot standby mode"):
		hint = adviceReadOnly
	case errors.As(err, &verify), errors.As(err, &authority):
		hint = "the server's certificate isn't trusted: name the right authority in sslrootcert (PGSSLROOTCERT), and the server by the name in its certificate"
	case strings.Contains(err.Error(), "server refused TLS connection"):
		hint = "the server has no TLS: turn it on there, or say sslmode=disable where the network is trusted"
	case errors.As(err, &connect), errors.As(err, &op), errors.Is(err, io.ErrUnexpectedEOF):
		hint = "is the server up, and are host and port right?"
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}
