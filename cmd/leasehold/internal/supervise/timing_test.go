package supervise

import (
	"strings"
	"testing"
	"time"
)

func TestDefaultsSurviveFiveSeconds(t *testing.T) {
	d := Timing{}.WithDefaults()
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if d.TTL != 20*time.Second || d.KillAfter != 2*time.Second || d.Validity() != 16*time.Second {
		t.Errorf("defaults are %+v, valid for %v", d, d.Validity())
	}
	if got := d.Survives(); got < 5*time.Second+500*time.Millisecond {
		t.Errorf("the defaults survive an outage of %v: want 5 s, and 500 ms for the requests themselves", got)
	}
}

func TestKillAfterFollowsTTL(t *testing.T) {
	for _, ttl := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, time.Hour} {
		if err := (Timing{TTL: ttl}).WithDefaults().Check(); err != nil {
			t.Errorf("TTL %v alone: %v", ttl, err)
		}
	}
}

func TestUnsafeTimingIsRefusedWithArithmetic(t *testing.T) {
	bad := Timing{TTL: 5 * time.Second, KillAfter: 3 * time.Second}
	err := bad.Check()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"TTL of 5s", "kill-after of 3s", "valid for 4s", "at 600ms", "every 1.25s", "raise --ttl", "lower --kill-after"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	better := bad
	better.TTL = bad.leastTTL()
	if err := better.Check(); err != nil {
		t.Errorf("the advice to raise the TTL to %v is wrong: %v", better.TTL, err)
	}
	better = bad
	better.KillAfter += bad.Survives()
	if err := better.Check(); err != nil {
		t.Errorf("the advice to lower kill-after to %v is wrong: %v", better.KillAfter, err)
	}
	if err := (Timing{TTL: time.Millisecond}).WithDefaults().Check(); err == nil {
		t.Error("a TTL of 1 ms was accepted")
	}
}
