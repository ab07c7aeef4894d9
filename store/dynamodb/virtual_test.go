package dynamodb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold/leasehold/store"
)

// virtual is a DynamoDB without a network, for tests on virtual time: the SDK's client speaks to it as to any other. It knows
// what the store asks of it in one table.
type virtual struct {
	now   func() time.Time               // the server's clock; time.Now when nil
	delay func() (to, fro time.Duration) // on the way of a request, and of its answer; none when nil

	mu    sync.Mutex
	rows  map[string]map[string]any
	count map[string]int // of requests, by operation
	reads []time.Time    // when GetItem came
}

// testVirtual returns a store on a new virtual table, unchecked. It is for synctest bubbles.
func testVirtual(t *testing.T, v *virtual, opts Options) *Store {
	t.Helper()
	v.mu.Lock()
	if v.rows == nil {
		v.rows, v.count = map[string]map[string]any{}, map[string]int{}
	}
	v.mu.Unlock()
	opts.Unchecked = true
	client := testClient(t, "http://virtual.invalid", func(o *dynamodb.Options) { o.HTTPClient = v })
	return testOpen(t, client, "leases", opts)
}

// requests returns how many requests of an operation came, and forgets them.
func (v *virtual) requests(op string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.count[op]
	v.count[op] = 0
	v.reads = nil
	return n
}

type virtualRequest struct {
	Key, Item                 map[string]any
	ConditionExpression       string
	ExpressionAttributeValues map[string]any
}

// Do is what the SDK asks of an HTTP client.
func (v *virtual) Do(r *http.Request) (*http.Response, error) {
	var in virtualRequest
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	var to, fro time.Duration
	if v.delay != nil {
		to, fro = v.delay()
	}
	time.Sleep(to)
	status, out := v.serve(opOf(r), in)
	now := time.Now()
	if v.now != nil {
		now = v.now()
	}
	time.Sleep(fro)
	body, err := json.Marshal(out)
	return &http.Response{
		StatusCode: status, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
		Header: http.Header{"Date": {now.UTC().Format(http.TimeFormat)}, "Content-Type": {"application/x-amz-json-1.0"}},
	}, err
}

func (v *virtual) serve(op string, in virtualRequest) (status int, out map[string]any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count[op]++
	key := in.Key
	if key == nil {
		key = in.Item
	}
	name, _ := key[attrKey].(map[string]any)["S"].(string)
	row := v.rows[name]
	switch {
	case op == "GetItem":
		v.reads = append(v.reads, time.Now())
		if row == nil {
			return http.StatusOK, map[string]any{}
		}
		return http.StatusOK, map[string]any{"Item": row}
	case in.ConditionExpression == "attribute_not_exists(#key)" && row != nil,
		in.ConditionExpression != "attribute_not_exists(#key)" && (row == nil || !reflect.DeepEqual(row[attrVersion], in.ExpressionAttributeValues[":version"])):
		out := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "The conditional request failed"}
		if row != nil {
			out["Item"] = row
		}
		return http.StatusBadRequest, out
	case op == "DeleteItem":
		delete(v.rows, name)
	default:
		v.rows[name] = in.Item
	}
	return http.StatusOK, map[string]any{}
}

// eventual is a client that counts reads which are not strong.
type eventual struct {
	Client
	reads, weak int
}

func (e *eventual) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	e.count(in.ConsistentRead)
	return e.Client.GetItem(ctx, in, opts...)
}

func (e *eventual) Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	e.count(in.ConsistentRead)
	return e.Client.Scan(ctx, in, opts...)
}

func (e *eventual) count(consistent *bool) {
	e.reads++
	if consistent == nil || !*consistent {
		e.weak++
	}
}

// Every read is strong. DynamoDB Local would not show the difference.
func TestReadsAreStrong(t *testing.T) {
	name, srv := testTable(t)
	client := &eventual{Client: testClient(t, srv.URL)}
	s := testOpen(t, client, name, Options{})
	rec := mustPut(t, s, held("k", 1))
	_, getErr := s.Get(t.Context(), "k")
	_, waitErr := s.Wait(t.Context(), "k", "")
	deleteErr := s.Delete(t.Context(), "k", rec.Version)
	_, conflictErr := s.Put(t.Context(), rec) // no row: looked for by a read
	for _, err := range s.List(t.Context(), "") {
		t.Error(err)
	}
	if getErr != nil || waitErr != nil || deleteErr != nil || !errors.Is(conflictErr, store.ErrNotFound) {
		t.Fatal(getErr, waitErr, deleteErr, conflictErr)
	}
	if client.reads != 4 || client.weak != 0 {
		t.Errorf("%d of %d reads were not strong; want none of 4", client.weak, client.reads)
	}
}
