package server

import (
	"io"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// bodyLimit is how long a client may take to send the body of its request. There is no limit on how
// long it then waits.
const bodyLimit = 30 * time.Second

// body is the body of a request that has to be there in time.
type body struct {
	io.ReadCloser
	rc *http.ResponseController
}

// hurry limits the time for the body of a request.
func hurry(w http.ResponseWriter, r *http.Request, clk clock.Clock) {
	if r.ContentLength == 0 {
		return
	}
	rc := http.NewResponseController(w)
	if rc.SetReadDeadline(clk.Wall().Add(bodyLimit)) == nil { // where it can't be set there is none
		r.Body = &body{r.Body, rc}
	}
}

// Read implements [io.Reader]. At the end the limit is lifted: the connection is read further, to
// see whether the client leaves. After an error it is not: net/http reads what is left of the body,
// and a client that sends nothing would keep it for ever.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}
