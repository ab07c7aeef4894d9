package dynamodb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// front is an HTTP server in front of DynamoDB Local, which does to requests what it is told to.
type front struct {
	*httptest.Server
	target string

	mu     sync.Mutex
	faults []fault // the next requests meet them, one each
	seen   []*http.Request
	late   []func() (status int, err error) // requests that are under way, though the client gave them up
}

// fault is what happens to one request. The zero value is none.
type fault struct {
	op     string                    // requests of other operations pass; "" for all
	unsent bool                      // the request isn't passed on
	answer func(http.ResponseWriter) // instead of the server's answer, which it may have given
	change func(body map[string]any) // of the server's answer
	lose   bool                      // the connection is closed instead of an answer
	hang   bool                      // no answer comes
	late   bool                      // the connection is closed at once, and the request is carried out by arrive
	after  func()                    // when the request has been carried out
}

// testFront starts a front before DynamoDB Local, for a table of the test's own.
func testFront(t testing.TB) (f *front, table string) {
	t.Helper()
	table, srv := testTable(t)
	f = &front{target: srv.URL}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Server.Close)
	return f, table
}

// do has the next requests meet these faults.
func (f *front) do(faults ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
	f.seen = nil
}

// requests returns how many requests of an operation came since do was called.
func (f *front) requests(op string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.seen {
		if opOf(r) == op {
			n++
		}
	}
	return n
}

func opOf(r *http.Request) string {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return op
}

func (f *front) next(r *http.Request) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, r)
	if len(f.faults) == 0 || f.faults[0].op != "" && f.faults[0].op != opOf(r) {
		return fault{}
	}
	first := f.faults[0]
	f.faults = f.faults[1:]
	return first
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	fault := f.next(r)
	if fault.late {
		f.delay(r, body)
		panic(http.ErrAbortHandler)
	}
	var status int
	var header http.Header
	var reply []byte
	if !fault.unsent {
		if status, header, reply, err = f.pass(r, body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if fault.after != nil {
		fault.after()
	}
	switch {
	case fault.lose:
		panic(http.ErrAbortHandler)
	case fault.hang:
		<-r.Context().Done()
		return
	case fault.answer != nil:
		fault.answer(w)
		return
	case fault.change != nil:
		var values map[string]any
		if json.Unmarshal(reply, &values) == nil {
			fault.change(values)
			reply, _ = json.Marshal(values)
		}
		header.Del("X-Amz-Crc32")
		header.Del("Content-Length")
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = w.Write(reply)
}

// pass sends the request on. It isn't cut short when the client goes away, as requests in a network aren't.
func (f *front) pass(r *http.Request, body []byte) (int, http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patient)
	defer cancel()
	out, err := http.NewRequestWithContext(ctx, r.Method, f.target+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	out.Header = r.Header.Clone()
	out.Close = true
	resp, err := http.DefaultClient.Do(out)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, reply, err
}

func (f *front) delay(r *http.Request, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = append(f.late, func() (int, error) {
		status, _, _, err := f.pass(r, body)
		return status, err
	})
}

// arrive passes on the requests that are late, and returns how often the server carried one out.
func (f *front) arrive(t testing.TB) (done int) {
	t.Helper()
	f.mu.Lock()
	late := f.late
	f.late = nil
	f.mu.Unlock()
	for _, pass := range late {
		status, err := pass()
		if err != nil {
			t.Error(err)
		}
		if status == http.StatusOK {
			done++
		}
	}
	return done
}

// says is the answer with which the service refuses a request.
func says(status int, code string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amzn-Requestid", "test")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"said by the test"}`, code)
	}
}

// times returns n of a fault.
func (f fault) times(n int) (all []fault) {
	for range n {
		all = append(all, f)
	}
	return all
}

// stubborn is a client that does not let its retries be turned off.
type stubborn struct{ *dynamodb.Client }

func (s stubborn) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return s.Client.PutItem(ctx, in)
}
