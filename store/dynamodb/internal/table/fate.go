package table

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/leasehold/leasehold/store"
)

// fate is what became of an attempt.
type fate uint8

const (
	done    fate = iota
	refused      // certainly not carried out, and no better if tried again
	later        // certainly not carried out; to be tried again
	unclear      // perhaps carried out; to be tried again
)

var throttles = []string{
	"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "Throttling",
	"TooManyRequestsException", "LimitExceededException",
}

const replicatedConflict = "ReplicatedWriteConflictException"

const accessDenied = "AccessDeniedException"

// Denied reports whether err is that this identity may not do something.
func Denied(err error) bool { return code(err) == accessDenied }

// replyError says in few words what the service replied, and the same whenever it replies the same:
// the client's own text has the number of the request in it.
type replyError struct {
	error
	text string
}

func (e *replyError) Error() string { return e.text }
func (e *replyError) Unwrap() error { return e.error }

// replied returns err in the words of the service, if it is the service's.
func replied(err error) error {
	var op *smithy.OperationError
	var api smithy.APIError
	if code(err) == "" || !errors.As(err, &op) || !errors.As(err, &api) {
		return err
	}
	return &replyError{err, fmt.Sprintf("%s: %s: %s", op.OperationName, api.ErrorCode(), api.ErrorMessage())}
}

// code returns the service's code for an error, or "" when the service didn't say one.
func code(err error) string {
	var api smithy.APIError
	// What the SDK calls an answer that isn't the service's.
	if !errors.As(err, &api) || api.ErrorCode() == "UnknownError" {
		return ""
	}
	return api.ErrorCode()
}

func status(err error) int {
	var re *smithyhttp.ResponseError
	if !errors.As(err, &re) {
		return 0
	}
	return re.HTTPStatusCode()
}

func throttled(err error) bool { return slices.Contains(throttles, code(err)) }

func fateOf(err error) fate {
	if err == nil {
		return done
	}
	if cond := new(types.ConditionalCheckFailedException); errors.As(err, &cond) {
		return refused
	}
	if c := code(err); c != "" {
		return fateOfCode(c, err)
	}
	if u := new(unsentError); errors.As(err, &u) {
		if u.local {
			return refused
		}
		return later
	}
	if dialling(err) {
		return later
	}
	return unclear
}

func fateOfCode(c string, err error) fate {
	// A signature whose time the client has corrected since.
	var retryable interface{ RetryableError() bool }
	switch s := status(err); {
	case throttled(err), c == replicatedConflict:
		return later
	case s < 400, s >= 500, s == http.StatusRequestTimeout:
		return unclear
	case errors.As(err, &retryable) && retryable.RetryableError():
		return later
	}
	return refused
}

// dialling reports whether err is that of making a connection.
func dialling(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns)
}

// explain says which table the error of an operation is about, and what to do.
func (t *Table) explain(err error, op string) error {
	if errors.Is(err, store.ErrClosed) {
		return store.ErrClosed
	}
	what := "table " + t.Name
	switch c := code(err); c {
	case "ResourceNotFoundException":
		return fmt.Errorf("%s: there is no such table in this account and Region: correct its name or the Region, or %s: %w", what, t.Make, err)
	case accessDenied:
		return fmt.Errorf("%s: not allowed: give this identity dynamodb:%s on the table: %w", what, op, err)
	case "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException", "MissingAuthenticationTokenException", "IncompleteSignatureException", "InvalidClientTokenId":
		return fmt.Errorf("%s: the credentials are refused: renew them, and set the machine's clock right: %w", what, err)
	case replicatedConflict:
		return fmt.Errorf("%s: writes of another Region are in the way: try again: %w", what, err)
	case "":
	default:
		if throttled(err) {
			return fmt.Errorf("%s: throttled: switch it to on-demand capacity, or raise what is provisioned: %w", what, err)
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	u := new(unsentError)
	if errors.As(err, &u) && u.local {
		return fmt.Errorf("%s: no request could be made: check that there are AWS credentials and a Region: %w", what, err)
	}
	if errors.As(err, &u) || dialling(err) {
		return fmt.Errorf("%s: DynamoDB can't be reached: check the endpoint, the Region and the network: %w", what, err)
	}
	if s := status(err); s >= 400 && s < 500 {
		return fmt.Errorf("%s: the answer isn't DynamoDB's (status %d): check the endpoint, and proxies on the way: %w", what, s, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
