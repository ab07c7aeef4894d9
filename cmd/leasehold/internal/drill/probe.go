package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// TokenHeader is the header by which the answer to a probe names the term that it was accepted in.
const TokenHeader = "Leasehold-Token"

// Probe tries one write, or asks whether one would be accepted. It returns nil if it was, and the
// fencing token that the answer names, or 0. It has to end with ctx.
type Probe func(ctx context.Context) (fence.Token, error)

// ParseProbe makes a probe of a URL (http or https: a GET that answers 2xx) or of a command for sh
// (exit code 0).
func ParseProbe(text string, side Side) (Probe, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, errors.New("want a URL, or a command for sh")
	case strings.HasPrefix(text, "http://"), strings.HasPrefix(text, "https://"):
		return urlProbe(text)
	}
	return func(ctx context.Context) (fence.Token, error) { return 0, runShell(ctx, text, "probe", side, nil) }, nil
}

// mostAnswer is how much of an answer's body is read, so that its connection can serve again.
const mostAnswer = 64 << 10

func urlProbe(url string) (Probe, error) {
	if _, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil); err != nil {
		return nil, err
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) (fence.Token, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, mostAnswer))
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return 0, err
		}
		if resp.StatusCode/100 != 2 {
			return 0, fmt.Errorf("%s", resp.Status)
		}
		token, err := fence.ParseToken(resp.Header.Get(TokenHeader))
		if err != nil {
			token = 0 // the answer names none
		}
		return token, nil
	}, nil
}

// service is the pod of samples that were not of one side.
const service = ""

// sample is one answer to a probe.
type sample struct {
	pod            string
	sent, answered clock.Instant
	ok             bool
	token          fence.Token
}

// follow tries a probe again and again, until ctx ends.
func (d *Drill) follow(ctx context.Context, book *book, pod string, probe Probe) {
	for ctx.Err() == nil {
		limited, cancel := clock.WithTimeout(ctx, d.Clock, max(d.Every, time.Second))
		s := sample{pod: pod, sent: d.Clock.Now()}
		var err error
		s.token, err = probe(limited)
		s.answered, s.ok = d.Clock.Now(), err == nil
		cancel()
		if ctx.Err() == nil {
			book.answer(s)
		}
		_ = clock.Sleep(ctx, d.Clock, d.Every-s.answered.Sub(s.sent))
	}
}
