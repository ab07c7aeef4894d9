package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// What lives on beside a later term is found, however the lines come; the rest of a line that isn't whole is read with the next look.
func TestFamilies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job-0")
	f := newFamilies()
	look := func(text string, terms int, want ...beside) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err == nil {
			_, err = file.WriteString(text)
		}
		if err == nil {
			err = file.Close()
		}
		if err == nil {
			err = f.follow("job-0", path)
		}
		if err != nil {
			t.Fatal(err)
		}
		got := f.overlaps()
		if f.count() != terms || len(got) != len(want) {
			t.Fatalf("%d terms, %v; want %d, %v", f.count(), got, terms, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%v, want %v", got[i], want[i])
			}
		}
	}
	if err := f.follow("job-0", path); err != nil {
		t.Fatal(err)
	}
	look("7 100 a x\n7 110 c x\n9 130 a y\n7 1", 2)
	look("29 b x\n9 140 a y\n", 2)
	first := beside{"job-0", 7, 9, 130, 131}
	look("7 131 b x\n", 2, first)
	look("12 150 a z\n", 3, first)
	look("7 170 b x\n", 3, beside{"job-0", 7, 12, 150, 170}, beside{"job-0", 7, 9, 130, 170})
	if err := f.take("job-0", "7 180 a another\n"); err == nil {
		t.Error("a token of two holders")
	}
	if err := f.take("job-0", "7 x\n"); err == nil {
		t.Error("a line that is none")
	}
}

// A stall explains an overlap if it is in the time before it in which it can have caused that.
func TestStalled(t *testing.T) {
	b := beside{from: 1000, to: 1200}
	for want, w := range map[time.Duration]window{0: {from: 0, to: 500}, 100: {from: 400, to: 600}, 250: {from: 650, to: 900}, 200: {from: 1000, to: clock.NoDeadline}} {
		if got := stalled([]window{w}, b, 500); got != want {
			t.Errorf("%+v: %v, want %v", w, got, want)
		}
	}
	if got := stalled([]window{{from: 600, to: 700}, {from: 800, to: 900}}, b, 500); got != 200 {
		t.Errorf("of two: %v", got)
	}
}
