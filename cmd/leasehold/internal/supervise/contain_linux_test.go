package supervise

import (
	"slices"
	"testing"
)

func TestOwnCgroupIsFoundUnderItsMount(t *testing.T) {
	const hybrid = "30 23 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro\n31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ mounts, path, want string }{
		{hybrid, "/", "/sys/fs/cgroup/unified"},
		{hybrid, "/user.slice/a b", "/sys/fs/cgroup/unified/user.slice/a b"},
		{"25 1 0:22 /docker/ab /sys/fs/cgroup ro shared:9 - cgroup2 cgroup rw\n", "/docker/ab/in", "/sys/fs/cgroup/in"},
		{`25 1 0:22 / /my\040cgroups rw - cgroup2 cgroup rw`, "/x", "/my cgroups/x"},
		{"25 1 0:22 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "/docker/cd", ""},
		{hybrid, "/../outside", ""},
		{"nonsense\n\n - cgroup2\n", "/", ""},
	} {
		got, err := underMount(c.mounts, c.path)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q in %q: %q, %v; want %q", c.path, c.mounts, got, err, c.want)
		}
	}
}

// What runs under two supervisors has the marks of both.
func TestMarksAddUp(t *testing.T) {
	c := container{mark: "inner"}
	if got := c.environ([]string{"A=1", EnvMark + "=outer"}); !slices.Equal(got, []string{"A=1", EnvMark + "=outer:inner"}) {
		t.Errorf("%q", got)
	}
	if got := c.environ([]string{"A=1"}); !slices.Equal(got, []string{"A=1", EnvMark + "=inner"}) {
		t.Errorf("%q", got)
	}
}

func TestContainIsChecked(t *testing.T) {
	if _, _, err := Containment("prison"); err == nil {
		t.Error("a way that there isn't was taken")
	}
}
