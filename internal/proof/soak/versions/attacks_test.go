//go:build linux

package versions

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// sql runs statements on a place's file, as no version would.
func (p *place) sql(statements ...string) {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.dir, "leases.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, text := range statements {
		if _, err := db.ExecContext(p.t.Context(), text); err != nil {
			p.t.Fatalf("%s: %v", text, err)
		}
	}
}

// body returns the record of a name as it is in a place's file.
func (p *place) body(name string) (body string) {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.dir, "leases.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(p.t.Context(), "SELECT body FROM records WHERE key = ?", name).Scan(&body); err != nil {
		p.t.Fatal(err)
	}
	return body
}

// A file whose schema is of a later version is refused by every version, and left as it is.
func TestNewerSchemaIsRefused(t *testing.T) {
	p := newPlace(t, "file")
	p.say(p.versions[0], "run", "x", "--", "true")
	p.sql("PRAGMA user_version = 2")
	before := p.body("x")
	for _, v := range p.versions {
		for _, args := range [][]string{{"run", "x", "--", "true"}, {"list"}} {
			_, errs, code := p.call(t.Context(), v, "", args...)
			if code != 125 || !strings.Contains(errs, "written by a newer Leasehold") {
				t.Errorf("%s %v: exit code %d, %s", v.name, args, code, errs)
			}
		}
	}
	if after := p.body("x"); after != before {
		t.Errorf("the record was\n%s, and is\n%s", before, after)
	}
}

// A field that a version doesn't know is no reason to refuse a record; the version's next write drops it. The token rises, and
// what belongs to a primitive, the data, stays.
func TestUnknownFieldsAreReadAndDropped(t *testing.T) {
	p := newPlace(t, "file")
	token := func() (n int64) {
		t.Helper()
		var rec struct {
			Token int64  `json:"token"`
			Data  string `json:"data"`
		}
		if err := json.Unmarshal([]byte(p.body("x")), &rec); err != nil || rec.Data != "e30=" {
			t.Errorf("%v in %s", err, p.body("x"))
		}
		return rec.Token
	}
	p.say(p.versions[0], "run", "x", "--", "true")
	for _, v := range p.versions {
		p.sql(`UPDATE records SET body = json_set(body, '$.later', json('{"a":[1]}'), '$.data', 'e30=') WHERE key = 'x'`)
		before := token()
		if out := p.say(v, "show", "x"); !strings.Contains(out, "free") {
			t.Errorf("%s shows\n%s", v.name, out)
		}
		p.say(v, "run", "x", "-n", "--", "true")
		if after := token(); after <= before || strings.Contains(p.body("x"), "later") {
			t.Errorf("%s: token %d after %d: %s", v.name, after, before, p.body("x"))
		}
	}
}

// A record of a later form is neither taken nor written by any version, and hinders no other name.
func TestLaterRecordsAreLeftAlone(t *testing.T) {
	p := newPlace(t, "file")
	p.say(p.versions[0], "run", "x", "--", "true")
	p.say(p.versions[0], "run", "y", "--", "true")
	p.sql(`UPDATE records SET body = json_set(body, '$.v', 2) WHERE key = 'x'`)
	before := p.body("x")
	for _, v := range p.versions {
		_, errs, code := p.call(t.Context(), v, "", "run", "x", "-n", "--", "true")
		if code != 125 || !strings.Contains(errs, "format 2") {
			t.Errorf("%s: exit code %d, %s", v.name, code, errs)
		}
		p.say(v, "run", "y", "-n", "--", "true")
		if out, _, _ := p.call(t.Context(), v, "", "list"); !strings.Contains(out, "unreadable") || !strings.Contains(out, "y ") {
			t.Errorf("%s lists\n%s", v.name, out)
		}
	}
	if after := p.body("x"); after != before {
		t.Errorf("the record was\n%s, and is\n%s", before, after)
	}
}

// A term of one version is broken by another: its holder learns of it, ends what it ran, and says so.
func TestBreaksReachOtherVersions(t *testing.T) {
	p := newPlace(t, "file")
	for i, holder := range p.versions {
		by := p.versions[(i+1)%len(p.versions)]
		name := "held-by-" + holder.name
		cmd := p.command(t.Context(), holder, "", job("run", name, "--ttl", ttl)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.until(holder.name+" holds the name", func() bool { return len(p.terms(name)) == 1 })
		p.say(by, "break", name, "--token", p.terms(name)[0].token.String(), "--reason", "a drill", "--yes")
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 79 {
			t.Errorf("%s was broken by %s, and ended with exit code %d", holder.name, by.name, code)
		}
		p.say(by, "run", name, "--ttl", ttl, "-w", "30s", "--", "true")
	}
}

// noKinds is the version that has no kinds: it doesn't see later versions' readers, and shares of semaphores.
const noKinds = "b0d3014"

// Readers of every earlier version keep a writer of today's out, and let today's readers in. Readers of today's keep
// out the writers of the versions that know kinds.
func TestReadersKeepWritersOut(t *testing.T) {
	p := newPlace(t, "file")
	last := p.versions[len(p.versions)-1]
	pair := func(reader, writer version) {
		name := reader.name + "-keeps-out-" + writer.name
		cmd := p.command(t.Context(), reader, "", job("run", name, "--shared", "--ttl", ttl)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.until(reader.name+" reads", func() bool { return len(p.terms(name)) == 1 })
		if _, errs, code := p.call(t.Context(), writer, "", "run", name, "-n", "--", "true"); code != 75 {
			t.Errorf("%s reads, and the writer of %s ended with exit code %d: %s", reader.name, writer.name, code, errs)
		}
		p.say(writer, "run", name, "--shared", "-n", "--", "true")
		_ = cmd.Cancel()
		_ = cmd.Wait()
	}
	for _, v := range p.versions[:len(p.versions)-1] {
		pair(v, last)
		if v.name != noKinds {
			pair(last, v)
		}
	}
}

// A rollback after the new version used what the old one doesn't know: an election with several pauses stays paused, by the one that
// ends last, and the old version's resume ends that.
func TestRollbackKeepsPauses(t *testing.T) {
	p := newPlace(t, "file")
	oldest, newest := p.versions[0], p.versions[len(p.versions)-1]
	east := &candidate{name: "east"}
	p.stand(east, newest)
	p.until("east leads", func() bool { return p.leads().token != 0 })
	p.say(newest, "pause", lead, "--reason", "short", "--for", "1h")
	p.say(newest, "pause", lead, "--reason", "a long move")
	p.stop(east)
	p.stand(east, oldest)
	before := p.leads()
	if out := p.say(oldest, "show", lead); !strings.Contains(out, "a long move") {
		t.Errorf("%s shows\n%s", oldest.name, out)
	}
	if out := p.say(newest, "show", lead); !strings.Contains(out, "a long move") {
		t.Errorf("%s shows\n%s", newest.name, out)
	}
	if now := p.leads(); now.token != before.token {
		t.Errorf("the election was paused, and term %d began", now.token)
	}
	p.say(oldest, "resume", lead)
	p.until("east leads", func() bool { return p.leads().token > before.token })
	p.stop(east)
}
