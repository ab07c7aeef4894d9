package admiral

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/fence"
)

// Handler serves the state:
//
//	/health/ready                        200
//	/health/ready?checkifreadonly=true   200 while active, 503 while passive; 400 for a value that is no boolean
//	/active                              200 while active, 503 while passive: for a load balancer that wants the active one
//	/standby                             503 while active, 200 while passive
//	/state                               all of it as JSON; see [Report]
//
// All of them answer GET and HEAD.
func Handler(s *State) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/ready", func(w http.ResponseWriter, r *http.Request) {
		check := false
		if values, ok := r.URL.Query()["checkifreadonly"]; ok {
			var err error
			if check, err = strconv.ParseBool(values[0]); err != nil {
				answer(w, http.StatusBadRequest, fmt.Sprintf("checkifreadonly=%q: want true or false", values[0]))
				return
			}
		}
		st := s.Status()
		if check && st.ReadOnly {
			answer(w, http.StatusServiceUnavailable, st.word())
			return
		}
		answer(w, http.StatusOK, st.word())
	})
	role := func(active bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			st := s.Status()
			code := http.StatusOK
			if st.ReadOnly == active {
				code = http.StatusServiceUnavailable
			}
			answer(w, code, st.word())
		}
	}
	mux.HandleFunc("GET /active", role(true))
	mux.HandleFunc("GET /standby", role(false))
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(s.Status().Report()) // an error is the client's, who has gone
	})
	return mux
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}

// word is the state in a line.
func (st Status) word() string {
	if !st.ReadOnly {
		return "active"
	}
	return "passive: " + st.Reason
}

// Report is a [Status] as JSON.
type Report struct {
	State       string      `json:"state"` // active or passive
	ReadOnly    bool        `json:"readOnly"`
	Initialized bool        `json:"isStateInitialized"`
	Reason      string      `json:"reason,omitempty"`
	Lease       string      `json:"lease,omitempty"`
	Pod         string      `json:"podIdentifier,omitempty"`
	Owner       string      `json:"owner,omitempty"`
	Token       fence.Token `json:"term,omitempty"` // the fencing token of the owner's term
	Since       *time.Time  `json:"since,omitempty"`
	ExpiresIn   float64     `json:"expiresInSeconds,omitempty"`
	LastError   string      `json:"lastError,omitempty"`
}

// Report returns st in its JSON form.
func (st Status) Report() Report {
	r := Report{
		State: "active", ReadOnly: st.ReadOnly, Initialized: st.Initialized, Reason: st.Reason, Lease: st.Lease, Pod: st.Pod,
		Owner: st.Owner, Token: st.Token, ExpiresIn: st.ExpiresIn.Seconds(),
	}
	if st.ReadOnly {
		r.State = "passive"
	}
	if !st.Since.IsZero() {
		r.Since = &st.Since
	}
	if st.Err != nil {
		r.LastError = st.Err.Error()
	}
	return r
}
