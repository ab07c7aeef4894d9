package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

// unread is the problem of a body that can't be read into v, which is nil for a body without
// fields.
func (c *call) unread(err error, v any) error {
	var (
		large  *http.MaxBytesError
		typed  *json.UnmarshalTypeError
		syntax *json.SyntaxError
	)
	switch {
	case errors.As(err, &large):
		return api.NewProblem(api.CodeTooLarge, "body: want at most %d bytes", large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.w.Header().Set("Connection", "close") // what comes late is no request
		return api.NewProblem(api.CodeTooSlow, "body: it was not there within %v", bodyLimit)
	case errors.As(err, &typed):
		return mistyped(typed)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return api.NewProblem(api.CodeInvalid, "body: it ends too early: want one complete JSON object")
	case errors.As(err, &syntax):
		return api.NewProblem(api.CodeInvalid, "body: %v: want one JSON object", syntax)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok && v != nil {
		return unknownField(name, v)
	}
	return api.NewProblem(api.CodeInvalid, "body: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// unknownField is the problem of a field, given in quotes, that the struct which v points to
// doesn't have.
func unknownField(quoted string, v any) error {
	var known []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			known = append(known, name)
		}
	}
	p := api.NewProblem(api.CodeInvalid, "body: unknown field %.80s: known are %s", quoted, strings.Join(known, ", "))
	p.Field, p.Want = strings.Trim(quoted, `"`), "one of "+strings.Join(known, ", ")
	return p
}

// mistyped is the problem of a field whose value is of another type than it has to be.
func mistyped(err *json.UnmarshalTypeError) error {
	if err.Field == "" {
		return api.NewProblem(api.CodeInvalid, "body: %s: want one JSON object", err.Value)
	}
	var want string
	switch kind := err.Type.Kind(); {
	case err.Type == reflect.TypeFor[api.Seconds]():
		want = fmt.Sprintf(`seconds, or a duration such as "1m30s", %v at most`, store.MaxTTL)
	case err.Type == reflect.TypeFor[fence.Token]():
		want = "a token: a whole number"
	case kind == reflect.String:
		want = "a string"
	case kind == reflect.Bool:
		want = "true or false"
	case kind == reflect.Slice:
		want = "an array"
	case kind == reflect.Map, kind == reflect.Struct:
		want = "an object"
	default:
		want = "a whole number"
	}
	p := api.Invalid(err.Field, err.Value, want)
	p.Detail = fmt.Sprintf("body: %s: %.80s: want %s", err.Field, err.Value, want)
	return p
}

// within reads a duration that a request may leave out.
func within(field string, s *api.Seconds, otherwise, least, most time.Duration) (time.Duration, error) {
	if s == nil {
		return otherwise, nil
	}
	d := time.Duration(*s)
	if d < least || d > most {
		return 0, api.Invalid(field, d.String(), least.String()+" to "+most.String())
	}
	return d, nil
}

// read reads the JSON body of a request into v, which stays as it is when there is no body.
func (c *call) read(v any) error {
	defer c.patience.extend(0) // what the client takes is not the store's
	d := json.NewDecoder(c.r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(&v) // null makes it nil
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil && v == nil {
		return api.NewProblem(api.CodeInvalid, "body: null: want one JSON object")
	}
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil || errors.As(err, new(*json.SyntaxError)) {
			return api.NewProblem(api.CodeInvalid, "body: want one JSON object and nothing behind it")
		}
	}
	return c.unread(err, v)
}
