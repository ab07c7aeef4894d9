package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/election"
)

// What was known before the store failed is never shown as what is.
func TestObservationsSayHowOldTheyAre(t *testing.T) {
	leader := election.Leader{Name: "job", Owner: "east/h/1/x", Token: 7, Since: time.Now()}
	old := leader
	old.Age = 90 * time.Second
	down := errors.New("no\nanswer")
	for _, c := range []struct {
		l          election.Leader
		err        error
		text, json string
	}{
		{leader, nil, `job east/h/1/x leads \(token 7\) since [0-9:]+; as of now`, `"leader":"east/h/1/x","token":7,"acquired":"[^"]*","age":0}`},
		{old, nil, `leads .*; as of 90s ago`, `"age":90}`},
		{old, down, `job nothing is known now: no; answer; 90s ago: east/h/1/x leads`, `"age":90,"stale":true,"error":"no; answer"}`},
		{election.Leader{Name: "job", Age: time.Hour}, down, `job nothing is known: no; answer$`, `"name":"job","token":0,"stale":true,"error":"no; answer"}`},
		{election.Leader{Name: "job", Token: 7}, nil, `job nobody leads; as of now`, `"name":"job","token":7,"age":0}`},
	} {
		for form, want := range map[string]string{outputTable: c.text, outputLines: c.json} {
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			a := &app{out: out, err: os.Stderr, clk: clock.System()}
			a.values = config.Values{{Setting: config.Setting{Name: "output"}, Text: form}}
			o := observationOf(c.l, c.err)
			o.Time = time.Now()
			if err := errors.Join(a.writeObservation(o), out.Close()); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(out.Name())
			if line := strings.TrimSuffix(string(got), "\n"); err != nil || !regexp.MustCompile(want).MatchString(line) {
				t.Errorf("%s, %v: want %s", line, err, want)
			}
		}
	}
}
