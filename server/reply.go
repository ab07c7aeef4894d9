package server

import (
	"encoding/json"
	"net/http"

	"github.com/leasehold/leasehold/internal/api"
)

func reply(w http.ResponseWriter, status int, body any) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if body == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	text, err := marshal(body)
	if err != nil {
		fail(w, api.NewProblem(api.CodeInternal, "%v", err))
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // whoever has gone needs no answer
}

func marshal(body any) ([]byte, error) {
	if g, ok := body.(*api.Grant); ok { // the most frequent one
		return g.Append(make([]byte, 0, 512))
	}
	return json.Marshal(body)
}

func fail(w http.ResponseWriter, p *api.Problem) {
	text, err := json.Marshal(p)
	if err != nil { // strings and numbers only
		text = nil
	}
	h := w.Header()
	h.Set("Content-Type", api.ContentProblem)
	h.Set("Cache-Control", "no-store")
	switch p.Status {
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		h.Set("Retry-After", retryAfter(p))
	}
	if p.Code == api.CodeUnauthenticated {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n'))
}
