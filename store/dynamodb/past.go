package dynamodb

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// freeRow is the size up to which a row is written for one unit.
const freeRow = 1 << 10

// encodePast returns the ended terms as lines of text for people: token, beginning, how long, why,
// owner, with tabs between, which no owner or reason contains. Where that would bring the row, of
// rest bytes without it, over what one write unit pays for, it is deflated: with lines that are so
// much alike, eight terms then take some 350 bytes.
func encodePast(past []store.Term, rest int) types.AttributeValue {
	var lines strings.Builder
	for i, t := range past {
		if i > 0 {
			lines.WriteByte('\n')
		}
		from, until := t.From.Round(0).UTC(), t.Until.Round(0).UTC()
		lasted := until.Sub(from).String()
		if !from.Add(until.Sub(from)).Equal(until) { // more than a Duration holds
			lasted = timeText(until)
		}
		fmt.Fprintf(&lines, "%d\t%s\t%s\t%s\t%s", t.Token, timeText(from), lasted, t.Why, t.Owner)
	}
	if text := lines.String(); len(attrPast)+len(text)+rest <= freeRow {
		return &types.AttributeValueMemberS{Value: text}
	}
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression) // fails for a bad level only
	_, _ = io.WriteString(w, lines.String())                // a buffer takes everything
	_ = w.Close()
	return &types.AttributeValueMemberB{Value: packed.Bytes()}
}

func decodePast(v types.AttributeValue) (past []store.Term, err error) {
	var lines string
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		lines = v.Value
	case *types.AttributeValueMemberB:
		b, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(v.Value)), store.MaxRecord+1))
		if err != nil {
			return nil, fmt.Errorf("not deflated text: %w", err)
		}
		if len(b) > store.MaxRecord {
			return nil, fmt.Errorf("more than %d bytes when inflated", store.MaxRecord)
		}
		lines = string(b)
	default:
		return nil, fmt.Errorf("a %s: want a string or binary", kindOf(v))
	}
	if lines == "" {
		return nil, nil
	}
	for line := range strings.SplitSeq(lines, "\n") {
		t, err := decodeTerm(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(past)+1, err)
		}
		past = append(past, t)
	}
	return past, nil
}

func decodeTerm(line string) (store.Term, error) {
	const fields = 5
	f := strings.Split(line, "\t")
	if len(f) != fields {
		return store.Term{}, fmt.Errorf("%d fields: want %d: token, beginning, how long, why, owner, with tabs between", len(f), fields)
	}
	token, err := strconv.ParseUint(f[0], 10, 64)
	if err != nil {
		return store.Term{}, errors.New("the token isn't a number")
	}
	from, err := time.Parse(time.RFC3339Nano, f[1])
	if err != nil {
		return store.Term{}, errors.New("the beginning isn't a time as in RFC 3339")
	}
	t := store.Term{Token: fence.Token(token), From: from.UTC(), Why: f[3], Owner: f[4]}
	if lasted, err := time.ParseDuration(f[2]); err == nil {
		t.Until = t.From.Add(lasted)
		return t, nil
	}
	until, err := time.Parse(time.RFC3339Nano, f[2])
	if err != nil {
		return store.Term{}, errors.New("the third field is neither a duration nor a time")
	}
	t.Until = until.UTC()
	return t, nil
}
