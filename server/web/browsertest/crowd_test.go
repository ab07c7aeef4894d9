package browsertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// crowd is how many names a board has to bear.
const crowd = 10_000

// frames scrolls through the whole page in 120 steps, in 10 s at most, and returns how long each frame took, in ms, the shortest
// first.
const frames = `new Promise((done) => {
	const gaps = [], end = document.documentElement.scrollHeight;
	const begun = performance.now();
	let last = begun, n = 0, most = 0;
	const step = (now) => {
		gaps.push(now - last);
		last = now;
		scrollTo(0, (n / 120) * end);
		most = Math.max(most, document.querySelectorAll('#rows .row').length);
		if (n++ < 120 && now - begun < 10_000) return requestAnimationFrame(step);
		scrollTo(0, end);
		done({frames: gaps.sort((a, b) => a - b), rows: most});
	};
	requestAnimationFrame(step);
})`

// tasks returns the longest task of the page's thread within 3 s, in ms; 0 when none took 50 ms.
const tasks = `(async () => {
	const all = [];
	new PerformanceObserver((list) => all.push(...list.getEntries().map((e) => e.duration))).observe({type: 'longtask'});
	await new Promise((done) => setTimeout(done, 3000));
	return Math.max(0, ...all);
})()`

// churn renews names one after the other, so many a second, until the test ends.
func (s *site) churn(t *testing.T, recs []store.Record, perSecond int) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(time.Second / time.Duration(perSecond))
		defer every.Stop()
		for i := 0; ; i = (i + 7919) % len(recs) { // all over the board
			select {
			case <-every.C:
			case <-ctx.Done():
				return
			}
			recs[i].Nonce += "'"
			rec, err := s.st.Put(ctx, recs[i])
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			recs[i] = rec
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}

// Ten thousand names are as many elements as fit on the screen, whatever is scrolled, sought and renewed. How long frames take is
// told, not judged: it is the machine's.
func TestTenThousand(t *testing.T) {
	s := serve(t, nil, server.Options{})
	recs := make([]store.Record, crowd)
	for i := range recs {
		recs[i] = s.put(t, store.Record{Key: fmt.Sprintf("shard/%05d", i), Owner: fmt.Sprintf("node-%d/x", i%50)})
	}
	begun := time.Now()
	p := open(t, desk, s.URL+"/#/")
	p.state("shard/00000", "held")
	t.Logf("%d names are shown after %v", crowd, time.Since(begun).Round(time.Millisecond))
	p.until("all are counted", fmt.Sprintf(`document.querySelector('[role=table]').getAttribute('aria-rowcount') === '%d'`, crowd+1))
	measure := func(what string) {
		t.Helper()
		got := eval[struct {
			Frames []float64 `json:"frames"`
			Rows   int       `json:"rows"`
		}](p, frames)
		n := len(got.Frames)
		t.Logf("%s, scrolling: a frame took %.0f ms at the median, %.0f ms at p95, %.0f ms at most; %d rows were elements",
			what, got.Frames[n/2], got.Frames[n*95/100], got.Frames[n-1], got.Rows)
		if got.Rows == 0 || got.Rows > 60 {
			t.Errorf("%s: %d rows are elements: want those in view", what, got.Rows)
		}
		p.state(fmt.Sprintf("shard/%05d", crowd-1), "held")
		t.Logf("%s, at rest: the longest task of 3 s took %.0f ms (0: none over 50 ms)", what, eval[float64](p, tasks))
	}
	measure("when nothing changes")
	s.churn(t, recs, 500)
	measure("with 500 renewals a second")
	p.do(chromedp.Evaluate[chromedp.Void](`scrollTo(0, 0)`), chromedp.SendKeys(chromedp.CSS("#search"), "node-7"))
	p.until("the holder's are found", `document.querySelector('[role=table]').getAttribute('aria-rowcount') === '201'`)
	if names := eval[string](p, `[...document.querySelectorAll('#rows .holder')].map((e) => e.innerText).join()`); strings.Count(names, "node-7/x") != strings.Count(names, "/x") {
		t.Errorf("found: %s", names)
	}
	p.fit()
}
