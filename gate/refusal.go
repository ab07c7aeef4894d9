package gate

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/fence"
)

// What became of a write that wasn't answered by the upstream.
const (
	notDone = "not_done"
	unknown = "unknown"
)

// refusal is the body of an answer of the gate's own.
type refusal struct {
	code  int
	retry time.Duration // 0 for no Retry-After

	Error   string      `json:"error"`
	Name    string      `json:"name,omitempty"`
	Holder  string      `json:"holder,omitempty"`
	Token   fence.Token `json:"token,omitempty"`
	Since   *time.Time  `json:"since,omitempty"`
	Outcome string      `json:"outcome,omitempty"`
	Message string      `json:"message"`
	*kubernetesStatus
}

// notHolder is the refusal of a write where this instance doesn't hold the lease.
func (g *Gate) notHolder() *refusal {
	no := &refusal{code: http.StatusServiceUnavailable, Error: "not_holder", Name: g.opts.Name, Outcome: notDone}
	var h Holder
	if g.opts.Holder != nil {
		h = g.opts.Holder()
	}
	what := "this instance doesn't hold the lease"
	if g.opts.Name != "" {
		what += " " + g.opts.Name
	}
	switch {
	case h.Owner != "":
		no.Holder, no.Token = h.Owner, h.Token
		what += fmt.Sprintf(", %s does (token %d)", h.Owner, h.Token)
		if !h.Since.IsZero() {
			no.Since = &h.Since
		}
	case h.Note != "":
		what += ", and nobody may: " + h.Note
	}
	no.Message = what + ": it passes reads only"
	no.retry = h.Retry
	return no
}

// refuse answers a request in the upstream's stead.
func (g *Gate) refuse(w http.ResponseWriter, no *refusal) {
	seconds := int64(math.Ceil(no.retry.Seconds()))
	if g.opts.Preset == Kubernetes {
		no.kubernetesStatus = newKubernetesStatus(no.code, seconds)
	}
	text, err := json.Marshal(no)
	// Nothing that consists of strings, numbers and a time that was read from a record.
	if err != nil {
		text = nil
	}
	if seconds > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(no.code)
	_, _ = w.Write(append(text, '\n')) // whoever has gone needs no answer
}
