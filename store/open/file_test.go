package open

import (
	"os/user"
	"strings"
	"testing"
)

func TestFileGroup(t *testing.T) {
	group, err := user.LookupGroupId("1")
	if err != nil {
		t.Skip("no group 1 on this system")
	}
	for url, want := range map[string]struct {
		path string
		id   int // -1 for no group
		mode string
	}{
		"file:/var/x.db":                                {"/var/x.db", -1, ""},
		"file:/var/x.db?group=4711":                     {"/var/x.db", 4711, "----------"},
		"file:/var/x.db?group=4711&mode=0660":           {"/var/x.db", 4711, "-rw-rw----"},
		"file:/var/x.db?mode=664&group=" + group.Name:   {"/var/x.db", 1, "-rw-rw-r--"},
		"file:/var/what?.db?group=" + group.Name:        {"/var/what?.db", 1, "----------"},
		"file:/var/what?":                               {"/var/what?", -1, ""},
		"file:///var/a/../x.db?group=4711&mode=0000660": {"/var/x.db", 4711, "-rw-rw----"},
	} {
		u, err := Parse(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		path, g, err := u.FileGroup()
		if err != nil || path != want.path || (g == nil) != (want.id < 0) || g != nil && (g.ID != want.id || g.Mode.String() != want.mode) {
			t.Errorf("%s: %q, %+v, %v; want %+v", url, path, g, err, want)
		}
		if again, err := Parse(u.String()); err != nil || again.String() != u.String() || !strings.HasPrefix(path, u.Dir()) {
			t.Errorf("%s: %v, %v; in %s", url, again, err, u.Dir())
		}
	}
	for url, want := range map[string]string{
		"file:/x.db?group=":                  `group ""`,
		"file:/x.db?mode=0660":               "mode without a group",
		"file:/x.db?group=1&mode=0666":       `mode "0666": want 0660`,
		"file:/x.db?group=1&mode=rw":         `mode "rw": want 0660`,
		"file:/x.db?group=1&mode=0600":       `mode "0600": want 0660`,
		"file:/x.db?owner=ada":               `parameter "owner": a file has group and mode`,
		"file:/x.db?group=1&umask=0":         `parameter "umask"`,
		"file:x/?group=1":                    "name of a file",
		"file:?group=1":                      "name of a file",
		"file://host/x.db?group=1&mode=0660": "three slashes",
	} {
		if u, err := Parse(url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", url, u, err, want)
		}
	}
	u, err := Parse("file:/x.db?group=no-such-group")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Open(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), `group "no-such-group": there is none of that name: make it, as root: groupadd no-such-group`) {
		t.Error(err)
	}
}
