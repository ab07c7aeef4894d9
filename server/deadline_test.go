package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
)

// A call gives up at the end as it was moved last, neither before nor after.
func TestTheEndOfPatienceMoves(t *testing.T) {
	const limit = 5 * time.Second
	for name, c := range map[string]struct {
		change func(p *patience)
		ends   time.Duration // after the change; 0 for never
	}{
		"extended":         {func(p *patience) { p.extend(0) }, limit},
		"by more":          {func(p *patience) { p.extend(time.Minute) }, limit + time.Minute},
		"by more, then 0":  {func(p *patience) { p.extend(time.Minute); p.extend(0) }, limit},
		"by more, later 0": {func(p *patience) { p.extend(time.Minute); time.Sleep(limit); p.extend(0) }, limit},
		"lifted":           {func(p *patience) { p.extend(0); p.lift() }, 0},
		"lifted, then on":  {func(p *patience) { p.lift(); p.extend(time.Second) }, limit + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := clocktest.New(0)
				p := (&Server{clk: clk, opts: Options{StoreTimeout: limit}}).newPatience(t.Context())
				defer p.end()
				advance := func(d time.Duration) bool {
					time.Sleep(d)
					synctest.Wait()
					return p.ctx.Err() != nil
				}
				if advance(limit - time.Millisecond) {
					t.Fatal("over before its first end")
				}
				c.change(p)
				if c.ends == 0 {
					if advance(time.Hour) {
						t.Error("over though it was lifted")
					}
					return
				}
				if advance(time.Millisecond) || advance(c.ends-2*time.Millisecond) {
					t.Error("over before the end as it was moved")
				}
				if !advance(2*time.Millisecond) || late(p.ctx) == nil {
					t.Errorf("not over at the end as it was moved: %v", late(p.ctx))
				}
			})
		})
	}
}
