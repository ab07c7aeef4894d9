package server

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
)

var (
	dialled = regexp.MustCompile(`dial (?:tcp|unix) (\S+): (?:connect: )?([^"]*)`)
	remote  = regexp.MustCompile(`rpc error: code = \w+ desc = |connection error: desc = |transport: `)
)

// plainly says why the store can't be used in words for an operator: without those of the library
// that asked it.
func plainly(err error) string {
	text := err.Error()
	if m := dialled.FindStringSubmatch(text); m != nil {
		return "the store can't be reached: no connection to " + m[1] + ": " + m[2]
	}
	var slow *lateError
	switch {
	case errors.As(err, &slow):
		return slow.Error()
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(text, context.DeadlineExceeded.Error()):
		return "the store does not answer"
	case errors.Is(err, context.Canceled), strings.Contains(text, context.Canceled.Error()):
		return "the connection to the store broke off"
	}
	return strings.Trim(remote.ReplaceAllString(text, ""), `"`)
}

// unanswered says plainly why the outcome of a write is not known.
func unanswered(r *http.Request, err error) string {
	if slow := late(r.Context()); slow != nil {
		return slow.Error()
	}
	text := plainly(err)
	if i := strings.LastIndex(text, mayHave); i >= 0 { // as driver.Unknown begins
		text = text[i+len(mayHave):]
	}
	return text
}

const mayHave = "the write may have happened: "
