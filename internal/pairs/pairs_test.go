package pairs

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

func at(second int) time.Time { return time.Date(2026, 11, 25, 12, 0, second, 0, time.UTC) }

// Of a hand-over the gap is told; of a term that expired, a bound; of a hold neither, since nobody was to be active.
func TestChanges(t *testing.T) {
	rec := store.Record{
		Key: "prod", Owner: "east/h/1/x", Acquired: at(50), TTL: 45 * time.Second, Past: []store.Term{
			{Owner: SkipOwner, From: at(40), Until: at(45), Why: "resumed by me"},
			{Owner: "west/h/1/y", From: at(30), Until: at(40), Why: "held passive by me"},
			{Owner: "east/h/1/z", From: at(10), Until: at(29), Why: "handed over to west"},
			{Owner: "west/h/1/q", From: at(0), Until: at(10), Why: "expired"},
		},
	}
	seen := lease.Status{Standing: lease.NameHeld, Holder: rec.Owner, Since: rec.Acquired, Record: rec}
	for name, tc := range map[string]struct {
		times Times
		told  []api.Instance
		most  time.Duration // of the term that expired
	}{
		"by its configuration":  {Times{45 * time.Second, 15 * time.Second}, nil, time.Minute},
		"by what instances say": {Times{}, []api.Instance{{Pod: "west", TTL: 45, WaitTime: 15}}, time.Minute},
		"by nothing":            {Times{}, []api.Instance{{Pod: "west"}}, -1},
		"by nonsense":           {Times{}, []api.Instance{{Pod: "west", WaitTime: 1e300}}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			all := Of(seen, tc.times, tc.told).Changes
			if len(all) != 5 {
				t.Fatalf("%+v", all)
			}
			for i, want := range []struct {
				from, to  string
				gap, most time.Duration
			}{{SkipOwner, "east", -1, -1}, {"west", SkipOwner, -1, -1}, {"east", "west", time.Second, -1}, {"west", "east", -1, tc.most}, {"", "west", -1, -1}} {
				value := func(v *api.Seconds) time.Duration {
					if v == nil {
						return -1
					}
					return time.Duration(*v)
				}
				if c := all[i]; c.From != want.from || c.To != want.to || value(c.Gap) != want.gap || value(c.GapAtMost) != want.most {
					t.Errorf("%d: %+v, want %+v", i, c, want)
				}
			}
		})
	}
}

func TestStates(t *testing.T) {
	held := store.Record{Key: "prod", Owner: "east/x", Acquired: at(9), TTL: 45 * time.Second, Info: map[string]string{InfoPod: "east", InfoRegion: "us-east-2"}}
	skip, resumed, free := held.Clone(), held.Clone(), held.Clone()
	skip.Owner, skip.TTL, skip.Info = SkipOwner, store.MaxTTL, map[string]string{InfoSettled: "true"}
	resumed.Owner = ResumedOwner
	free.Owner, free.Info, free.Past = "", nil, []store.Term{{Owner: "east/x", From: at(1), Until: at(8)}}
	for name, tc := range map[string]struct {
		rec      store.Record
		standing lease.Standing
		status   string // that east says
		want     api.PairState
		since    time.Time
		ttl      time.Duration
	}{
		"an instance holds it":          {held, lease.NameHeld, "active", api.PairActive, at(9), 45 * time.Second},
		"an instance that has not said": {held, lease.NameHeld, "", api.PairActive, at(9), 45 * time.Second},
		"an instance that warms up":     {held, lease.NameHeld, "warming up", api.PairWarming, at(9), 45 * time.Second},
		"an instance that is gone":      {held, lease.NameExpired, "", api.PairExpired, at(9), 45 * time.Second},
		"broken":                        {held, lease.NameBroken, "", api.PairBroken, at(9), 45 * time.Second},
		"handed over":                   {held, lease.NameHanded, "passive", api.PairHanded, at(9), 45 * time.Second},
		"an operator":                   {skip, lease.NameHeld, "passive", api.PairHeld, at(9), 0},
		"an operator, for ages":         {skip, lease.NameExpired, "passive", api.PairHeld, at(9), 0},
		"after a hold":                  {resumed, lease.NameHeld, "passive", api.PairResuming, at(9), 45 * time.Second},
		"nobody":                        {free, lease.NameFree, "passive", api.PairFree, at(8), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var told []api.Instance
			if tc.status != "" {
				told = []api.Instance{{Pod: "east", Owner: "east/x", Status: tc.status}}
			}
			p := Of(lease.Status{Standing: tc.standing, Holder: tc.rec.Owner, Since: tc.rec.Acquired, Record: tc.rec}, Times{}, told)
			if p.State != tc.want || p.Since == nil || !p.Since.Equal(tc.since) || (p.TTL == nil) != (tc.ttl == 0) || p.TTL != nil && time.Duration(*p.TTL) != tc.ttl {
				t.Errorf("%+v", p)
			}
			if p.Settled != (tc.want == api.PairHeld) {
				t.Errorf("settled: %v", p.Settled)
			}
		})
	}
}

// What instances said before the present term can't be true of it: who is active then is another one, or nobody.
func TestOutdated(t *testing.T) {
	told := []api.Instance{{Pod: "east", Owner: "east/x", Status: "active"}, {Pod: "west", Owner: "west/y", Status: "passive", Waits: "x"}, {Pod: "north", Owner: "north/z", Status: "warming up", Waits: "x"}}
	for name, tc := range map[string]struct {
		rec  store.Record
		want [3]string
	}{
		"another has it":       {store.Record{Owner: "west/y"}, [3]string{"passive", "active", "warming up"}},
		"the same has it":      {store.Record{Owner: "east/x"}, [3]string{"active", "passive", "warming up"}},
		"one that warms up":    {store.Record{Owner: "north/z"}, [3]string{"passive", "passive", "warming up"}},
		"one of Admiral":       {store.Record{Owner: "south"}, [3]string{"passive", "passive", "warming up"}},
		"an operator":          {store.Record{Owner: SkipOwner}, [3]string{"active", "passive", "warming up"}},
		"an operator, settled": {store.Record{Owner: SkipOwner, Info: map[string]string{InfoSettled: "true"}}, [3]string{"passive", "passive", "warming up"}},
		"after a hold":         {store.Record{Owner: ResumedOwner}, [3]string{"active", "passive", "warming up"}},
		"nobody":               {store.Record{Version: "1"}, [3]string{"passive", "passive", "warming up"}},
		"no row":               {store.Record{}, [3]string{"active", "passive", "warming up"}},
	} {
		if name != "no row" {
			tc.rec.Version = "1"
		}
		for i, one := range Outdated(tc.rec, told) {
			if one.Status != tc.want[i] || one.Status == "active" && one.Waits != "" {
				t.Errorf("%s: %+v, want %s", name, one, tc.want[i])
			}
		}
	}
	if told[0].Status != "active" || told[1].Waits != "x" {
		t.Errorf("it has changed what was told: %+v", told)
	}
}

// A row of Admiral's own doesn't say since when it stands, so no time and no gap is made up.
func TestAdmiralsRow(t *testing.T) {
	rec := store.Record{Key: "prod", Owner: "east", TTL: time.Minute, Past: []store.Term{{Owner: "west/h/1/y", From: at(1), Until: at(5), Why: "handed over"}, {Owner: "east", Until: at(1), Why: "released"}}}
	p := Of(lease.Status{Standing: lease.NameHeld, Holder: rec.Owner, Record: rec}, Times{}, nil)
	if p.Since != nil || len(p.Changes) != 3 || p.Changes[0].At != nil || p.Changes[0].Gap != nil || p.Changes[1].Gap == nil || p.Changes[2].At != nil {
		t.Errorf("%+v", p)
	}
}
