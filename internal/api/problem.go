package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// ContentProblem is the content type of a [Problem].
const ContentProblem = "application/problem+json"

// Code names a problem, for ever.
type Code string

// The codes.
const (
	CodeInvalid         Code = "invalid_request"
	CodeUnauthenticated Code = "unauthenticated"
	CodeAuthUnavailable Code = "auth_unavailable"
	CodeForbidden       Code = "forbidden"
	CodeSecret          Code = "wrong_secret"
	CodeNotFound        Code = "not_found"
	CodeNoRoute         Code = "no_such_route"
	CodeNoJournal       Code = "no_journal"
	CodeNoAnswer        Code = "journal_unavailable"
	CodeMethod          Code = "method_not_allowed"
	CodeHeld            Code = "held"
	CodeOtherKind       Code = "other_kind"
	CodeExhausted       Code = "pool_exhausted"
	CodeMismatch        Code = "pool_mismatch"
	CodeUndeclared      Code = "pool_undeclared"
	CodeNoIDs           Code = "ids_unavailable"
	CodeNotCurrent      Code = "not_current"
	CodeBroken          Code = "broken"
	CodeReplaced        Code = "replaced"
	CodeRemoved         Code = "removed"
	CodeNoLeader        Code = "no_leader"
	CodeNotElected      Code = "not_elected"
	CodeNoCandidate     Code = "no_candidate"
	CodeNotPaused       Code = "not_paused"
	CodePauses          Code = "several_pauses"
	CodeTooManyPauses   Code = "too_many_pauses"
	CodeNoPair          Code = "no_pair"
	CodeNobodyActive    Code = "nobody_active"
	CodeNoInstance      Code = "no_instance"
	CodeForeign         Code = "foreign_instance"
	CodeNotHeldPassive  Code = "not_held_passive"
	CodeNoTTL           Code = "ttl_unknown"
	CodeNoSlice         Code = "no_slice"
	CodeNoWorker        Code = "no_worker"
	CodeManyWorkers     Code = "several_workers"
	CodeOtherSpace      Code = "space_mismatch"
	CodeConflict        Code = "version_conflict"
	CodeTooLarge        Code = "too_large"
	CodeTooSlow         Code = "too_slow"
	CodeTooMany         Code = "too_many_requests"
	CodeGone            Code = "client_gone"
	CodeCorrupt         Code = "corrupt_record"
	CodeInternal        Code = "internal"
	CodeUnavailable     Code = "store_unavailable"
	CodeClosing         Code = "closing"
	CodeUnknown         Code = "outcome_unknown"
)

// The errors of what only a server says.
var (
	ErrUnauthenticated = errors.New("the server does not know the caller")
	ErrForbidden       = errors.New("the server's policy does not allow it")
	ErrSecret          = errors.New("the secret is not that of the term or session")
	ErrReplaced        = errors.New("the same request was sent again, and has this one's place")
	ErrRemoved         = errors.New("the request was taken out of the queue")
	ErrTooMany         = errors.New("too many requests at a time")
	ErrNoJournal       = errors.New("the server keeps no journal")
	ErrNoPair          = errors.New("no instances of leasehold standby share this lease")
	ErrNobodyActive    = errors.New("nobody is active")
	ErrNoInstance      = errors.New("no such instance that could take over answers")
	ErrForeign         = errors.New("the active instance is one of Admiral itself, which takes no orders")
	ErrNotHeldPassive  = errors.New("no operator holds the instances passive")
	ErrUnavailable     = errors.New("the server can't answer now")
)

// statusGone is what servers call a request whose client has hung up: HTTP has no status for it.
const statusGone = 499

// kinds is the table of problems: the status and the title of each code, and the error that it is
// to a program, if there is one.
var kinds = map[Code]struct {
	Status int
	Title  string
	Err    error
}{
	CodeInvalid:         {http.StatusBadRequest, "the request is not valid", store.ErrInvalid},
	CodeUnauthenticated: {http.StatusUnauthorized, "the caller is not known", ErrUnauthenticated},
	CodeAuthUnavailable: {http.StatusServiceUnavailable, "it can't be found out now who calls", ErrUnavailable},
	CodeForbidden:       {http.StatusForbidden, "the caller may not do this", ErrForbidden},
	CodeSecret:          {http.StatusForbidden, "the secret is not that of the term or session", ErrSecret},
	CodeNotFound:        {http.StatusNotFound, "there is no such record", store.ErrNotFound},
	CodeNoRoute:         {http.StatusNotFound, "there is nothing at this path", nil},
	CodeNoJournal:       {http.StatusNotFound, "the server keeps no journal", ErrNoJournal},
	CodeNoAnswer:        {http.StatusServiceUnavailable, "the journal can't be read now", ErrUnavailable},
	CodeMethod:          {http.StatusMethodNotAllowed, "this path does not take this method", nil},
	CodeHeld:            {http.StatusConflict, "somebody else holds the name", lease.ErrHeld},
	CodeOtherKind:       {http.StatusConflict, "the name is in use as another kind", store.ErrKind},
	CodeExhausted:       {http.StatusConflict, "every value of the pool is held", identity.ErrExhausted},
	CodeMismatch:        {http.StatusConflict, "the pool has other values or another layout, or the name has another value", identity.ErrMismatch},
	CodeUndeclared:      {http.StatusConflict, "nobody has said yet what the values of the pool are", identity.ErrUndeclared},
	CodeNoIDs:           {http.StatusServiceUnavailable, "no ids can be made now", ErrUnavailable},
	CodeNotCurrent:      {http.StatusConflict, "the term is not the current one", fence.ErrStale},
	CodeBroken:          {http.StatusConflict, "an operator broke the hold", lease.ErrLost},
	CodeReplaced:        {http.StatusConflict, "the same request was sent again, and has this one's place", ErrReplaced},
	CodeRemoved:         {http.StatusConflict, "the request was taken out of the queue", ErrRemoved},
	CodeNoLeader:        {http.StatusConflict, "nobody leads", election.ErrNoLeader},
	CodeNotElected:      {http.StatusConflict, "it is held by no candidate", election.ErrNotElected},
	CodeNoCandidate:     {http.StatusConflict, "there is no such candidate that may lead", election.ErrNoCandidate},
	CodeNotPaused:       {http.StatusConflict, "the election is not paused, or not by that id", election.ErrNotPaused},
	CodePauses:          {http.StatusConflict, "several operators have paused the election", election.ErrPauses},
	CodeTooManyPauses:   {http.StatusConflict, "the election has as many pauses as it may", election.ErrTooMany},
	CodeNoPair:          {http.StatusNotFound, "no instances of leasehold standby share this lease", ErrNoPair},
	CodeNobodyActive:    {http.StatusConflict, "nobody is active", ErrNobodyActive},
	CodeNoInstance:      {http.StatusConflict, "no such instance that could take over answers", ErrNoInstance},
	CodeForeign:         {http.StatusConflict, "the active instance is one of Admiral itself, which takes no orders", ErrForeign},
	CodeNotHeldPassive:  {http.StatusConflict, "no operator holds the instances passive", ErrNotHeldPassive},
	CodeNoTTL:           {http.StatusConflict, "it is not known for how long the instance before the hold may still be active", nil},
	CodeNoSlice:         {http.StatusNotFound, "there is no such slice in the space", shard.ErrNoSlice},
	CodeNoWorker:        {http.StatusNotFound, "there is no such worker in the space", shard.ErrNoWorker},
	CodeManyWorkers:     {http.StatusConflict, "several workers have that name", shard.ErrManyWorkers},
	CodeOtherSpace:      {http.StatusConflict, "the space is one of names, or of hashes", shard.ErrMismatch},
	CodeConflict:        {http.StatusPreconditionFailed, "the record was changed by another write", store.ErrConflict},
	CodeTooLarge:        {http.StatusRequestEntityTooLarge, "the request is too large", store.ErrInvalid},
	CodeTooSlow:         {http.StatusRequestTimeout, "the rest of the request did not come", nil},
	CodeTooMany:         {http.StatusTooManyRequests, "too many requests of one client at a time", ErrTooMany},
	CodeGone:            {statusGone, "the client hung up before it was done", nil},
	CodeCorrupt:         {http.StatusInternalServerError, "a stored record can't be read", store.ErrCorrupt},
	CodeInternal:        {http.StatusInternalServerError, "the server failed", nil},
	CodeUnavailable:     {http.StatusServiceUnavailable, "the store does not answer", ErrUnavailable},
	CodeClosing:         {http.StatusServiceUnavailable, "the server is closing", ErrUnavailable},
	CodeUnknown:         {http.StatusGatewayTimeout, "it is not known whether the write happened", store.ErrUnknownOutcome},
}

// Codes returns every code there is.
func Codes() []Code {
	codes := make([]Code, 0, len(kinds))
	for c := range kinds {
		codes = append(codes, c)
	}
	return codes
}

// Status returns the HTTP status of a code; 500 for one that isn't known.
func (c Code) Status() int { return cmp.Or(kinds[c].Status, http.StatusInternalServerError) }

// Problem is the body of an answer that says why something was not done (RFC 9457). It is an error.
type Problem struct { //nolint:errname // the RFC calls it so
	Type   string `json:"type"`   // about:blank#CODE
	Title  string `json:"title"`  // what the code means
	Status int    `json:"status"` // the HTTP status
	Code   Code   `json:"code"`   // what went wrong: codes stay the same
	Detail string `json:"detail"` // what went wrong, in a sentence

	Field string `json:"field,omitempty"` // the field of the request that is wrong
	Value string `json:"value,omitempty"` // its value
	// What the field should be; of other_kind: what the name was wanted as.
	Want string `json:"want,omitempty"`

	Name   string      `json:"name,omitempty"`   // the name that the request was about
	Holder string      `json:"holder,omitempty"` // who holds the name now
	Token  fence.Token `json:"token,omitempty"`  // the token of the current term
	Got    fence.Token `json:"got,omitempty"`    // the token that was sent
	Since  *time.Time  `json:"since,omitempty"`  // when the current term began
	// How long the current hold lasts, unless it is renewed.
	ExpiresIn *Seconds `json:"expires_in,omitempty"`
	// Who broke the hold or handed it over, and why.
	Note string     `json:"note,omitempty"`
	Kind store.Kind `json:"kind,omitempty"` // of other_kind: what the name is
	// Of version_conflict: the record, as it is stored.
	Record json.RawMessage `json:"record,omitempty"`
	// Of version_conflict: the version of the record.
	Version string `json:"version,omitempty"`
}

func (p *Problem) Error() string { return p.Detail }

// Is reports whether target is the error that the problem's code stands for.
func (p *Problem) Is(target error) bool { return target != nil && kinds[p.Code].Err == target }

// NewProblem returns a problem of that code.
func NewProblem(code Code, format string, args ...any) *Problem {
	k := kinds[code]
	return &Problem{Type: "about:blank#" + string(code), Title: k.Title, Status: code.Status(), Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Invalid returns the problem of a request one field of which is wrong.
func Invalid(field, value, want string) *Problem {
	p := NewProblem(CodeInvalid, "%s %.80q: want %s", field, value, want)
	p.Field, p.Value, p.Want = field, fmt.Sprintf("%.80s", value), want
	return p
}

// The fields of a record as [store.InvalidError] calls them, and as requests do. Others have one
// name.
var (
	inRequests = map[string]string{"Key": "name", "Owner": "holder"}
	inRecords  = map[string]string{"name": "Key", "holder": "Owner"}
)

// ProblemOf turns an error into the problem that says the same.
func ProblemOf(err error) *Problem {
	var (
		p        *Problem
		held     *lease.HeldError
		stale    *fence.StaleError
		lost     *lease.LostError
		conflict *store.ConflictError
		invalid  *store.InvalidError
		corrupt  *store.CorruptError
		other    *store.KindError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &held):
		p = NewProblem(CodeHeld, "%v", held)
		p.Name, p.Holder, p.Token, p.Note = held.Name, held.Holder, held.Token, held.Note
		p.Since, p.ExpiresIn = &held.Since, (*Seconds)(&held.ExpiresIn)
	case errors.As(err, &other):
		p = NewProblem(CodeOtherKind, "%v", other)
		p.Name, p.Holder, p.Kind, p.Want = other.Name, other.Holder, other.Kind, string(other.Wanted)
	case errors.As(err, &stale):
		p = NewProblem(CodeNotCurrent, "%v", stale)
		p.Name, p.Holder, p.Token, p.Got = stale.Name, stale.Holder, stale.Current, stale.Got
	case errors.As(err, &lost):
		p = NewProblem(CodeBroken, "%v", lost)
		p.Name, p.Token = lost.Name, lost.Token
		if lost.Err != nil {
			p.Note = lost.Err.Error()
		}
	case errors.As(err, &conflict):
		p = NewProblem(CodeConflict, "%v", conflict)
		p.Name = conflict.Current.Key
		p.setRecord(conflict.Current)
	case errors.As(err, &invalid):
		told := *invalid
		told.Field = cmp.Or(inRequests[told.Field], told.Field)
		p = Invalid(told.Field, told.Value, told.Want)
		p.Detail = told.Error()
	case errors.As(err, &corrupt):
		p = NewProblem(CodeCorrupt, "%v", corrupt)
		p.Name, p.Note = corrupt.Key, corrupt.Err.Error()
	default:
		if p = identityProblem(err); p == nil {
			p = NewProblem(codeOf(err), "%v", err)
		}
	}
	return p
}

// codeOf returns the code of an error that says no more than what it matches.
func codeOf(err error) Code {
	for _, c := range plain {
		if errors.Is(err, kinds[c].Err) {
			return c
		}
	}
	return CodeUnavailable
}

// plain are the codes of errors that have no type of their own. What isn't known goes before all
// that is.
var plain = []Code{CodeUnknown, CodeNotFound, CodeCorrupt, CodeNoLeader, CodeNotElected, CodeNoCandidate, CodeNotPaused, CodePauses, CodeTooManyPauses,
	CodeNoSlice, CodeNoWorker, CodeManyWorkers, CodeOtherSpace}

func (p *Problem) setRecord(rec store.Record) {
	text, err := driver.Marshal(rec)
	if err == nil {
		p.Record, p.Version = text, rec.Version
	}
}

// Err returns the error that [ProblemOf] made the problem of, as far as it can be told; else the
// problem itself.
func (p *Problem) Err() error {
	switch p.Code {
	case CodeHeld:
		held := &lease.HeldError{Name: p.Name, Holder: p.Holder, Token: p.Token, Note: p.Note}
		if p.Since != nil {
			held.Since = *p.Since
		}
		if p.ExpiresIn != nil {
			held.ExpiresIn = time.Duration(*p.ExpiresIn)
		}
		return held
	case CodeOtherKind:
		return &store.KindError{Name: p.Name, Kind: p.Kind, Wanted: store.Kind(p.Want), Holder: p.Holder}
	case CodeNotCurrent:
		return &fence.StaleError{Name: p.Name, Got: p.Got, Current: p.Token, Holder: p.Holder}
	case CodeBroken:
		return &lease.LostError{Name: p.Name, Token: p.Token, Cause: lease.CauseBroken, Err: errors.New(p.Note)}
	case CodeCorrupt:
		if p.Name != "" {
			return driver.Corrupt(p.Name, errors.New(p.Note))
		}
	case CodeConflict:
		rec, err := driver.Unmarshal(p.Record)
		if err != nil {
			return errors.Join(p, err)
		}
		rec.Key, rec.Version = p.Name, p.Version
		return &store.ConflictError{Current: rec}
	case CodeInvalid:
		if p.Field == "" {
			break
		}
		return &store.InvalidError{Field: cmp.Or(inRecords[p.Field], p.Field), Value: p.Value, Want: p.Want}
	}
	return p
}
