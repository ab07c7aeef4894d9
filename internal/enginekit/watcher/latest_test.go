package watcher

import "testing"

// What is told counts only if it is certain to come after all that was read, told and shown.
func TestWhatIsToldCounts(t *testing.T) {
	for name, c := range map[string]struct {
		latest Latest
		at     uint64
		from   []uint64
		want   bool
	}{
		"the next":                         {Latest{Known: true, At: 7, Shown: 7}, 8, []uint64{7, 6}, true},
		"the same":                         {Latest{Known: true, At: 7, Shown: 7}, 7, []uint64{7}, true},
		"nobody waits":                     {Latest{Known: true, At: 7, Shown: 7}, 8, nil, true},
		"the one that was shown":           {Latest{Known: true, At: 7, Shown: 8}, 8, []uint64{7}, true},
		"older than what was read":         {Latest{Known: true, At: 7}, 6, []uint64{6}, false},
		"older than what was shown":        {Latest{Known: true, At: 7, Shown: 9}, 8, []uint64{7}, false},
		"older than what one of two knows": {Latest{Known: true, At: 7, Shown: 7}, 8, []uint64{7, 9}, false},
		"one of two knows none":            {Latest{Known: true, At: 7, Shown: 7}, 8, []uint64{7, 0}, false},
		"nothing is known":                 {Latest{At: 7, Shown: 7}, 8, []uint64{7}, false},
		"nothing was there":                {Latest{Known: true}, 8, []uint64{7}, false},
	} {
		if got := c.latest.Counts(c.at, c.from...); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A read that began after something was shown has seen it, whatever numbers say: they fall when a server is put back from a backup.
func TestNumbersThatFell(t *testing.T) {
	l := Latest{Known: true, At: 7, Shown: 7}
	l.Show(9, 1)
	l.Read(8, 1) // begun before 9 was shown
	if l.Counts(8) || !l.Counts(9) {
		t.Errorf("%+v: the older one counts, or the one that was shown doesn't", l)
	}
	l.Read(3, 2)
	if !l.Counts(4) || l.Counts(2) {
		t.Errorf("%+v: numbers that fell are not followed", l)
	}
	l.Show(0, 2)
	if l.Counts(10) {
		t.Error("what is told after a deletion was shown counts")
	}
}
