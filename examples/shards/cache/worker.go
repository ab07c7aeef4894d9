package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/shard/shardhttp"
	"github.com/leasehold/leasehold/store/file"
)

const ttl = 5 * time.Second

// cache is what a worker has in memory: the values of keys, by slice.
type cache struct {
	db string

	mu    sync.Mutex
	parts map[*shard.Slice]*part
	hot   map[string][]string // keys to load, of slices that are to come, by id of the slice
}

// part is the values of one slice. Its lock keeps what is in memory in the order of the database.
type part struct {
	mu     sync.Mutex
	values map[string]string
}

// work is a worker until SIGTERM.
func work(ctx context.Context, path, db string) (err error) {
	st, err := file.Open(ctx, path, file.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	m, err := lease.NewManager(st, lease.Options{TTL: ttl})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c := &cache{db: db, parts: map[*shard.Slice]*part{}, hot: map[string][]string{}}
	o, err := shard.Join(ctx, m, shard.Space{Name: space, Hashed: true, Slices: 64}, shard.Worker{
		Address: l.Addr().String(), Prepare: c.prepare, Start: c.begin, Stop: c.end,
		OnError: func(err error) { fmt.Fprintln(os.Stderr, "worker:", err) },
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/keys/", shardhttp.Handler(o, c, shardhttp.Options{Key: key}))
	mux.HandleFunc("GET /hot", c.tellHot)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }() // until Shutdown
	<-ctx.Done()
	leaving, cancel := context.WithTimeout(context.Background(), 3*ttl)
	defer cancel()
	err = o.Leave(leaving)
	// Callers that are late are told who owns their keys.
	_ = clock.Sleep(leaving, clock.System(), time.Second)
	return errors.Join(err, srv.Shutdown(leaving))
}

// prepare asks the present owner of a slice which of its keys are in its memory: those are worth to
// be loaded. Their values may still change.
func (c *cache) prepare(_ context.Context, s *shard.Slice) {
	if s.Previous == "" {
		return
	}
	text, err := call(http.MethodGet, fmt.Sprintf("http://%s/hot?from=%d&to=%d", s.Previous, s.From, s.To), "", nil)
	var hot []string
	if err == nil {
		err = json.Unmarshal([]byte(text), &hot)
	}
	if err != nil {
		return // the slice begins with a cold cache
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hot[s.ID()] = hot
}

// tellHot tells the keys of a range that are in memory.
func (c *cache) tellHot(w http.ResponseWriter, r *http.Request) {
	from, err1 := strconv.ParseUint(r.FormValue("from"), 10, 64)
	to, err2 := strconv.ParseUint(r.FormValue("to"), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	hot := []string{}
	c.mu.Lock()
	parts := slices.Collect(maps.Values(c.parts))
	c.mu.Unlock()
	for _, p := range parts {
		p.mu.Lock()
		for k := range p.values {
			if h := shard.Hash(k); h >= from && h <= to {
				hot = append(hot, k)
			}
		}
		p.mu.Unlock()
	}
	_ = json.NewEncoder(w).Encode(hot) // else the caller has gone
}

// begin loads what is hot. No other worker writes any of it from now on.
func (c *cache) begin(_ context.Context, s *shard.Slice) error {
	c.mu.Lock()
	hot := c.hot[s.ID()]
	delete(c.hot, s.ID())
	c.mu.Unlock()
	p := &part{values: map[string]string{}}
	for _, k := range hot {
		value, err := call(http.MethodGet, c.row(k), "", nil)
		if err != nil {
			return err
		}
		p.values[k] = value
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts[s] = p
	return nil
}

func (c *cache) end(s *shard.Slice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.parts, s)
}

func (c *cache) row(k string) string { return "http://" + c.db + "/" + url.PathEscape(k) }

// ServeHTTP reads a key, or writes it, under the token of its slice.
func (c *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, k := shardhttp.Slice(r.Context()), key(r)
	c.mu.Lock()
	p := c.parts[s]
	c.mu.Unlock()
	if p == nil {
		p = &part{values: map[string]string{}} // the slice has just been drained
	}
	value, err := c.do(p, s, r, k)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	// Another worker may have written the key since.
	if err := s.Check(); r.Method == http.MethodGet && err != nil {
		shardhttp.Refuse(w, err)
		return
	}
	_, _ = io.WriteString(w, value)
}

// do carries a request out.
func (c *cache) do(p *part, s *shard.Slice, r *http.Request, k string) (string, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if value, known := p.values[k]; known && r.Method == http.MethodGet {
		return value, nil
	}
	value, err := call(r.Method, c.row(k), string(body), http.Header{fence.Header: {s.Sequencer().String()}})
	if err != nil {
		delete(p.values, k) // the database may have written it
		return "", err
	}
	p.values[k] = value
	return value, nil
}

// database is what the cache is in front of. It refuses writes of earlier owners of a key.
type database struct {
	reads, stale atomic.Int64

	mu   sync.Mutex
	rows map[string]row
}

type row struct {
	mark  fence.Mark
	value string
}

// ServeHTTP reads a row, or writes it, and answers with its value.
func (d *database) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.rows[r.URL.Path]
	if r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		var s fence.Sequencer
		if err == nil {
			s, err = fence.ParseSequencer(r.Header.Get(fence.Header))
		}
		if err == nil {
			// The mark is the row's: slices split and merge.
			at.mark, err = at.mark.Admit(r.URL.Path, s.Holder, s.Token)
		}
		if err != nil {
			d.stale.Add(1)
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		at.value = string(body)
		d.rows[r.URL.Path] = at
	} else {
		d.reads.Add(1)
	}
	_, _ = io.WriteString(w, at.value)
}
