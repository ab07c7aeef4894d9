package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
)

type unreachable struct{ tries int }

func (u *unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	u.tries++
	return nil, errors.New("connection refused")
}

// A call is tried for as long as the options say, with their pauses, and no longer.
func TestRetryBounds(t *testing.T) {
	for minPause, most := range map[time.Duration]int{time.Nanosecond: 20, time.Hour: 1} { // the longer one ends after the call
		synctest.Test(t, func(t *testing.T) {
			network := &unreachable{}
			c, err := New("http://127.0.0.1:1", Options{
				HTTP: &http.Client{Transport: network}, Clock: clocktest.New(0), Retry: Retry{For: time.Millisecond, MinPause: minPause, MaxPause: time.Hour},
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Get(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("MinPause %v: %v", minPause, err)
			}
			if network.tries != most { // pauses of 1, 2, 4 … ns: 19 of them fit in a millisecond
				t.Errorf("MinPause %v: %d tries, want %d", minPause, network.tries, most)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRetryRefusals(t *testing.T) {
	for field, r := range map[string]Retry{
		"For": {For: -1}, "Try": {Try: -1}, "MinPause": {MinPause: -1}, "MaxPause": {MaxPause: -1}, "MaxPause 1ms": {MaxPause: time.Millisecond},
	} {
		if _, err := New("http://127.0.0.1:1", Options{Retry: r}); err == nil || !strings.Contains(err.Error(), "Retry."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if r, err := (Retry{MinPause: time.Minute}).withDefaults(); err != nil || r.MaxPause != time.Minute || r.For != 10*time.Second {
		t.Errorf("%+v, %v", r, err)
	}
}
