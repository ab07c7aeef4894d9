package dynamodb

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		setup         Setup
		writes, reads float64
		dollars       float64
		perHold       float64 // dollars
	}{
		// 3 renewals in 15 s are 525,600 in 730 h.
		"one lease": {Setup{Leases: 1}, 525_600, 0, 0.3285, 0.3285},
		// 4 looks in 15 s are 700,800: a read for each of few, a list of the table for many, and reads where others have most of that.
		"16 in a session":          {Setup{Leases: 16, Sessions: 1}, 525_600, 16 * 700_800, 0.3285 + 1.4016, 16 * 0.3285},
		"17 in a session":          {Setup{Leases: 17, Sessions: 1}, 525_600, 5 * 700_800, 0.3285 + 0.438, 17 * 0.3285},
		"10,000 in a session":      {Setup{Leases: 10_000, Sessions: 1}, 525_600, 2500 * 700_800, 0.3285 + 219, 3285},
		"10,000 in 20 sessions":    {Setup{Leases: 10_000, Sessions: 20}, 20 * 525_600, 10_000 * 700_800, 6.57 + 876, 3285},
		"20,000 in 19 sessions":    {Setup{Leases: 20_000, Sessions: 19}, 19 * 525_600, 19 * 5000 * 700_800, 6.2415 + 8322, 6570},
		"rows of 5 KiB":            {Setup{Leases: 1, Sessions: 1, RowBytes: 5 << 10}, 5 * 525_600, 2 * 700_800, 1.6425 + 0.1752, 1.6425},
		"three Regions":            {Setup{Leases: 1, Regions: 3}, 3 * 525_600, 0, 0.9855, 0.9855},
		"rows of 1,025 bytes":      {Setup{Leases: 1, RowBytes: 1025}, 2 * 525_600, 0, 0.657, 0.657},
		"a TTL of 30 s":            {Setup{Leases: 1, TTL: 30 * time.Second}, 525_600 / 2, 0, 0.16425, 0.16425},
		"a waiter":                 {Setup{Waiters: 1}, 0, 2_628_000 / 0.9375, 0.3504, 0.3504},
		"a waiter, slow":           {Setup{Waiters: 1, PollMax: 10 * time.Second}, 0, 262_800 / 0.9375, 0.03504, 0.03504},
		"a waiter, rows of 5 KiB":  {Setup{Waiters: 1, RowBytes: 5 << 10}, 0, 2 * 2_628_000 / 0.9375, 0.7008, 0.7008},
		"hand-overs":               {Setup{Leases: 10, Sessions: 1, Handovers: 1e6, TTL: Month, Renewals: 0.001}, 2e7 + 0.001, 1e7 + 40, 13.750005, 13.75},
		"prices":                   {Setup{Leases: 1, WritePrice: 1.25}, 525_600, 0, 0.657, 0.657},
		"a waiter, price of reads": {Setup{Waiters: 1, ReadPrice: 0.25}, 0, 2_628_000 / 0.9375, 0.7008, 0.7008},
	} {
		e, err := Cost(c.setup)
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }
		if err != nil || !near(e.Total.Writes, c.writes) || !near(e.Total.Reads, c.reads) || !near(e.Total.Dollars, c.dollars) || !near(e.PerHold.Dollars, c.perHold) {
			t.Errorf("%s: %+v, %v; want %v writes, %v reads, $%v, $%v", name, e, err, c.writes, c.reads, c.dollars, c.perHold)
		}
		if sum := e.Renew.Dollars + e.Look.Dollars + e.Change.Dollars + e.Wait.Dollars; !near(sum, e.Total.Dollars) {
			t.Errorf("%s: the parts cost %v, the whole %v", name, sum, e.Total.Dollars)
		}
	}
	for want, bad := range map[string]Setup{
		"leases -1":           {Leases: -1},
		"sessions 2":          {Leases: 1, Sessions: 2},
		"renewals per TTL -1": {Renewals: -1},
		"price of writes NaN": {WritePrice: math.NaN()},
		"TTL -1s":             {TTL: -time.Second},
		"poll 1ms":            {PollMax: time.Millisecond},
		"Regions -1":          {Regions: -1},
		"bytes of a row":      {RowBytes: 1 << 20},
	} {
		if e, err := Cost(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %+v, %v; want an error about %s", bad, e, err, want)
		}
	}
}
