package shards

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold/leasehold/internal/proof/golden"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store/dynamodb"
)

const (
	requestShards  = 1000
	requestWorkers = 8
	requestTTL     = 10 * time.Second // KCL's own default
)

// tally is requests to DynamoDB, and the capacity that they take.
type tally struct {
	writes, reads         int
	writeUnits, readUnits float64
}

func (t tally) minus(o tally) tally {
	return tally{t.writes - o.writes, t.reads - o.reads, t.writeUnits - o.writeUnits, t.readUnits - o.readUnits}
}

// meter passes requests on to DynamoDB Local, and counts them.
type meter struct {
	url string

	mu  sync.Mutex
	all tally
	ops map[string]int
}

var (
	writeOps = map[string]bool{"PutItem": true, "UpdateItem": true, "DeleteItem": true, "BatchWriteItem": true, "TransactWriteItems": true}
	readOps  = map[string]bool{"GetItem": true, "BatchGetItem": true, "Query": true, "Scan": true, "TransactGetItems": true}
	units    = regexp.MustCompile(`"CapacityUnits":([0-9.eE+-]+)`)
)

func newMeter(t *testing.T, target string) *meter {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{ops: map[string]int{}}
	srv := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to); ask(r.Out) },
		ModifyResponse: m.count,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // a client that went away
	})
	t.Cleanup(srv.Close)
	m.url = srv.URL
	return m
}

func operation(r *http.Request) string {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return op
}

// ask has DynamoDB say what a request takes.
func ask(r *http.Request) {
	if op := operation(r); !writeOps[op] && !readOps[op] {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the request fails
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) == nil {
		fields["ReturnConsumedCapacity"] = json.RawMessage(`"TOTAL"`)
		if changed, err := json.Marshal(fields); err == nil {
			body = changed
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
}

func (m *meter) count(r *http.Response) error {
	op := operation(r.Request)
	if !writeOps[op] && !readOps[op] {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var answer struct{ ConsumedCapacity json.RawMessage }
	_ = json.Unmarshal(body, &answer) // an error has none
	took := 0.0
	for _, u := range units.FindAllSubmatch(answer.ConsumedCapacity, -1) {
		n, err := strconv.ParseFloat(string(u[1]), 64)
		if err != nil {
			return err
		}
		took += n
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ops[op]++
	if writeOps[op] {
		m.all.writes++
		m.all.writeUnits += max(took, 1) // a write that is refused takes as much
	} else {
		m.all.reads++
		m.all.readUnits += took
	}
	return nil
}

func (m *meter) now() tally {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all
}

// crew is workers that own the shards of one space, or stream.
type crew interface {
	join(n int)
	leave()     // has one of them leave, in order: one that has as many shards as any
	has() []int // how many shards each has, without the one that leaves
}

// ourCrew is of package shard.
type ourCrew struct {
	t       *testing.T
	url     string
	workers []*shard.Owner
}

func (c *ourCrew) join(n int) {
	c.t.Helper()
	space := shard.Space{Name: "requests"}
	for i := range requestShards {
		space.Names = append(space.Names, fmt.Sprintf("shardId-%012d", i))
	}
	for range n {
		client := awsdb.New(awsdb.Options{
			Region: "us-east-1", BaseEndpoint: aws.String(c.url),
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "leasehold", SecretAccessKey: "leasehold"}, nil
			}),
		})
		if _, err := dynamodb.Create(c.t.Context(), client, "leases"); err != nil {
			c.t.Fatal(err)
		}
		st, err := dynamodb.Open(c.t.Context(), client, "leases", dynamodb.Options{})
		if err != nil {
			c.t.Fatal(err)
		}
		m, err := lease.NewManager(st, lease.Options{TTL: requestTTL})
		if err != nil {
			c.t.Fatal(err)
		}
		o, err := shard.Join(c.t.Context(), m, space, shard.Worker{OnError: func(err error) { c.t.Log(err) }})
		if err != nil {
			c.t.Fatal(err)
		}
		c.workers = append(c.workers, o)
		c.t.Cleanup(func() {
			_ = o.Close() // it may have left
			_ = m.Close() // as above
			_ = st.Close()
		})
	}
}

func (c *ourCrew) leave() {
	o := c.workers[0]
	c.workers = c.workers[1:]
	go func() {
		if err := o.Leave(context.Background()); err != nil {
			c.t.Error(err)
		}
	}()
}

func (c *ourCrew) has() (all []int) {
	for _, o := range c.workers {
		all = append(all, len(o.Slices()))
	}
	return all
}

// kclCrew is of the Kinesis Client Library.
type kclCrew struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

func newKCL(t *testing.T, url string) *kclCrew {
	t.Helper()
	dir, err := javaProgram(t.Context(), "kcl", "Kcl.java")
	if err != nil {
		t.Fatal(err)
	}
	cmd := javaCommand(t.Context(), dir, "Kcl", url, strconv.Itoa(requestShards), strconv.FormatInt(requestTTL.Milliseconds(), 10))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Logf("KCL: %v: %s", err, errs.Bytes())
		}
	})
	return &kclCrew{t, in, bufio.NewScanner(out)}
}

func (c *kclCrew) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *kclCrew) join(n int) { c.say(fmt.Sprint("join ", n)) }
func (c *kclCrew) leave()     { c.say("leave") }

func (c *kclCrew) has() (all []int) {
	c.t.Helper()
	c.say("")
	if !c.out.Scan() {
		c.t.Fatal("KCL has ended: ", c.out.Err())
	}
	for _, f := range strings.Fields(c.out.Text())[1:] {
		n, err := strconv.Atoi(f)
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// until waits until the shards are as wanted, and returns for how long that took; false if they never are within the time.
func until(t *testing.T, c crew, within time.Duration, want func(has []int) bool) (time.Duration, bool) {
	t.Helper()
	began := time.Now()
	for last := ""; ; {
		has := c.has()
		if want(has) {
			return time.Since(began), true
		}
		if time.Since(began) > within {
			return within, false
		}
		if now := fmt.Sprint(has); now != last {
			t.Logf("after %v: %s", time.Since(began).Round(time.Second), now)
			last = now
		}
		<-time.After(500 * time.Millisecond)
	}
}

func sum(all []int) (n int) {
	for _, k := range all {
		n += k
	}
	return n
}

// TestRequests counts what 1,000 shards cost on DynamoDB, by package shard and by the Kinesis Client Library. With -update only: it takes
// minutes.
func TestRequests(t *testing.T) {
	if !*update {
		t.Skip("it takes minutes: ", command)
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		t.Fatal(err)
	}
	db := servers.DynamoDB(t)
	text := bytes.NewBufferString("\n| | of | seconds | writes | write units | reads | read units |\n|---|---|---|---|---|---|---|\n")
	for _, who := range []string{"Leasehold", "KCL"} {
		t.Run(who, func(t *testing.T) {
			m := newMeter(t, db.URL)
			defer func() { t.Log(m.ops) }()
			var c crew = &ourCrew{t: t, url: m.url}
			if who == "KCL" {
				c = newKCL(t, m.url)
			}
			line := func(what string, took time.Duration, n tally, ok bool) {
				seconds := fmt.Sprintf("%.0f", took.Seconds())
				if !ok {
					seconds = "more than " + seconds
				}
				l := fmt.Sprintf("| %s | %s | %s | %d | %.0f | %d | %.0f |\n", what, who, seconds, n.writes, n.writeUnits, n.reads, n.readUnits)
				t.Log(l)
				text.WriteString(l)
			}
			full := func(has []int) bool { return sum(has) == requestShards }
			before, began := m.now(), time.Now()
			c.join(requestWorkers)
			_, ok := until(t, c, 3*time.Minute, full)
			line(fmt.Sprintf("%d workers start, until all shards have an owner", requestWorkers), time.Since(began), m.now().minus(before), ok)
			if !ok {
				t.Fatal("they never have all shards")
			}
			until(t, c, 40*time.Second, func([]int) bool { return false }) // they settle
			before = m.now()
			until(t, c, time.Minute, func([]int) bool { return false })
			line("a minute in which nothing moves", time.Minute, m.now().minus(before), true)
			before = m.now()
			c.leave()
			took, ok := until(t, c, 90*time.Second, full)
			line("one leaves in order, until all have an owner", took, m.now().minus(before), ok)
			if who == "KCL" {
				return // it balances by throughput, of which there is none: one that comes gets nothing
			}
			before = m.now()
			c.join(1)
			took, ok = until(t, c, 2*time.Minute, func(has []int) bool {
				return full(has) && has[len(has)-1] >= requestShards/requestWorkers*9/10
			})
			line("one comes, until it has 9/10 of its share", took, m.now().minus(before), ok)
		})
	}
	if t.Failed() {
		return
	}
	text.WriteString("\n")
	golden.Check(t, page, "dynamodb", command, text.Bytes(), true)
}
