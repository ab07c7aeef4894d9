package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

type unreachable struct{ tries int }

func (u *unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	u.tries++
	return nil, errors.New("connection refused")
}

// A call is tried for as long as the options say, with their pauses, and no longer.
func TestRetryBounds(t *testing.T) {
	network := &unreachable{}
	for _, hour := range []time.Duration{0, time.Hour} { // the pause is longer than the call may take
		c, err := New("http://127.0.0.1:1", Options{HTTP: &http.Client{Transport: network}, Retry: Retry{For: time.Millisecond, MinPause: max(hour, time.Nanosecond), MaxPause: hour}})
		if err != nil {
			t.Fatal(err)
		}
		network.tries = 0
		if _, err := c.Get(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("MinPause %v: %v", hour, err)
		}
		if hour > 0 && network.tries != 1 || network.tries == 0 {
			t.Errorf("MinPause %v: %d tries", hour, network.tries)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
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
