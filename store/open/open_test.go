package open

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/fileurl"
)

func TestParse(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", "/home/ada")
	for url, want := range map[string]string{
		"file:leases.db":      "file:" + filepath.Join(dir, "leases.db"),
		"file:./a/../b.db":    "file:" + filepath.Join(dir, "b.db"),
		"file:/var/x.db":      "file:/var/x.db",
		"file:///var/x.db":    "file:/var/x.db",
		"file:~/x.db":         "file:/home/ada/x.db",
		"file:/a b/100%?.db":  "file:/a b/100%?.db",
		"memory:":             "memory:",
		"file:/var/naïve:.db": "file:/var/naïve:.db",
	} {
		got, err := Parse(url)
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v; want %s", url, got, err, want)
		}
		if again, err := Parse(want); err != nil || again.String() != want {
			t.Errorf("%s: %v, %v", want, again, err)
		}
	}
}

func TestParseErrorsSayWhatToDo(t *testing.T) {
	for url, wants := range map[string][]string{
		"":                 {"file:PATH", "memory:"},
		"leases.db":        {"no scheme", "file:leases.db"},
		"./a:b":            {"no scheme", "file:./a:b"},
		`C:\leases.db`:     {"no scheme", `file:C:\leases.db`},
		"sqlite:x.db":      {`unknown scheme "sqlite"`, "file:PATH", "memory:"},
		"File:x":           {`unknown scheme "File"`, "file:PATH"},
		"file:":            {"name of a file"},
		"file:/var/":       {"name of a file"},
		"file://host/x.db": {"three slashes", "another machine"},
		"memory:something": {"want nothing there"},
		"ftp://x/y?a=file": {`unknown scheme "ftp"`},
	} {
		u, err := Parse(url)
		if err == nil {
			t.Errorf("%q was accepted: %v", url, u)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %q is not in: %v", url, want, err)
			}
		}
	}
}

func TestStateDir(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	t.Setenv("XDG_STATE_HOME", "")
	for goos, want := range map[string]string{
		"linux":  "/home/ada/.local/state/leasehold",
		"darwin": "/home/ada/Library/Application Support/leasehold",
	} {
		if got, err := fileurl.StateDir(goos); err != nil || got != want {
			t.Errorf("%s: %s, %v", goos, got, err)
		}
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	if got, err := fileurl.StateDir("linux"); err != nil || got != "/state/leasehold" {
		t.Errorf("%s, %v", got, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative") // the specification says to ignore it
	if got, _ := fileurl.StateDir("linux"); got != "/home/ada/.local/state/leasehold" {
		t.Error(got)
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	if url, err := Default(); err == nil || !strings.Contains(err.Error(), "--store file:PATH") {
		t.Errorf("%s, %v", url, err)
	}
}

func TestOpen(t *testing.T) {
	u, err := Parse("file:" + filepath.Join(t.TempDir(), "sub", "leases.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Open(t.Context(), Options{}); err == nil {
		t.Error("opened in a folder that is missing")
	}
	if _, err := u.Open(t.Context(), Options{MustExist: true}); err == nil || !strings.Contains(err.Error(), "doesn't exist: make it with mkdir -p") {
		t.Errorf("%v", err)
	}
	st, err := u.Open(t.Context(), Options{CreateDir: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err = u.Open(t.Context(), Options{MustExist: true}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// What people write who come from other programs is answered with what to write here.
func TestMistakesAreMended(t *testing.T) {
	for url, want := range map[string]string{
		"127.0.0.1:2379":             "it has no scheme: write etcd://127.0.0.1:2379",
		"localhost:6379":             "write redis://localhost:6379",
		"localhost:1234":             "write SCHEME://localhost:1234; known are file:PATH",
		"psql://h/db":                "write postgres://",
		"etcds://h":                  "write etcd://…?tls=true",
		"ETCD://h":                   "write etcd in lower case",
		"etcd:127.0.0.1:2379":        "want // after the colon, and then a host: etcd://127.0.0.1:2379",
		"etcd:/127.0.0.1":            "etcd://127.0.0.1",
		"redis://:p@ss/word@h:6379":  `its user or password has a '@' in it: write % as %25, / as %2F`,
		"redis://:ssh/secret@h:6379": `a '/' in it`,
		"postgres://u:se#cret@h/db":  `a '#' in it`,
		"postgres://u:se%zcret@h/db": `a '%' in it`,
		"postgres://u:se/cret@h/db":  `a '/' in it`,

		"etcd://u:se%zcret@h": "a '%' in it",
	} {
		_, err := Parse(url)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "cret") || strings.Contains(err.Error(), "word@") {
			t.Errorf("%s: %v, want %q, and no password", url, err, want)
		}
	}
	for _, url := range []string{
		"postgres://u:p@h1:1,h2:2/db", "postgres://h:5432/db?user=a@b", "postgres://u:p%23@h/db", "etcd://u:p%40@h/a@b", "etcd://h:2379/a@b", "postgres://u:p@h/db?options=a@b",
	} {
		if _, err := Parse(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
