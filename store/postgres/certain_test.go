package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A statement was certainly not carried out only if the server says so as an ERROR, or it was never sent.
func TestWhichErrorsAreCertain(t *testing.T) {
	said := func(severity, code string) error {
		return &pgconn.PgError{SeverityUnlocalized: severity, Code: code}
	}
	for _, c := range []struct {
		err     error
		certain bool
		code    string
	}{
		{said("ERROR", codeUnique), true, codeUnique},
		{said("ERROR", codeReadOnly), true, codeReadOnly},
		{said("ERROR", codeSerialization), true, codeSerialization},
		{said("ERROR", codeCompletionUnknown), false, codeCompletionUnknown},
		{said("ERROR", codeResolutionUnknown), false, codeResolutionUnknown},
		{said("FATAL", "57P01"), false, "57P01"}, // it shuts down, maybe after the commit
		{said("PANIC", "XX000"), false, "XX000"},
		{errReadOnly, true, ""},
		{errUnreplicated, false, ""},
		{io.ErrUnexpectedEOF, false, ""},
		{context.DeadlineExceeded, false, ""},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if refused(err) != c.certain || sqlstate(err) != c.code {
				t.Errorf("%v: certain %v, SQLSTATE %q", err, refused(err), sqlstate(err))
			}
		}
	}
	if !refused(unsent{}) || refused(errors.New("any other")) {
		t.Error("what was never sent was certainly not carried out, and nothing else")
	}
}

// unsent is an error of a statement that the client has not sent.
type unsent struct{}

func (unsent) Error() string     { return "not sent" }
func (unsent) SafeToRetry() bool { return true }
