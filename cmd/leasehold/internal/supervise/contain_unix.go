//go:build unix

package supervise

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/leaseguard"
)

// container is how one command is contained.
type container struct {
	kind   Contain // not auto
	cgroup *cgroup // nil unless it is ContainCgroup
	mark   string  // "" if there is none
}

// contained prepares the containment of a command. why says why it isn't the strongest.
func contained(want Contain) (c container, why error, err error) {
	if want == "" {
		want = ContainAuto
	}
	if !slices.Contains(Contains, want) {
		return c, nil, fmt.Errorf("contain %q: want auto, cgroup, descendants or group", want)
	}
	if want == ContainAuto || want == ContainCgroup {
		c.cgroup, why = newCgroup()
		if why != nil && want == ContainCgroup {
			return c, nil, fmt.Errorf("contain the command in a control group: %w", why)
		}
	}
	switch {
	case c.cgroup != nil:
		c.kind = ContainCgroup
	case want == ContainGroup || want == ContainAuto && !findsDescendants:
		return container{kind: ContainGroup}, why, nil
	case !findsDescendants:
		return c, nil, fmt.Errorf("contain %q: descendants can't be found on this system; use group", want)
	default:
		c.kind = ContainDescendants
	}
	c.mark = rand.Text()
	return c, why, nil
}

// environ returns env with the mark.
func (c *container) environ(env []string) []string {
	if c.mark == "" {
		return env
	}
	marks := c.mark
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		outer, is := strings.CutPrefix(v, EnvMark+"=")
		if is && outer != "" {
			marks = outer + ":" + c.mark
		}
		return is
	})
	return append(env, EnvMark+"="+marks)
}

// scope returns what a guard has to end beside the process group.
func (c *container) scope() leaseguard.Scope {
	s := leaseguard.Scope{Mark: c.mark}
	if c.cgroup != nil {
		s.Cgroup = c.cgroup.dir
	}
	return s
}

// Containment tells how commands are contained here, for people, and why no better.
func Containment(want Contain) (Contain, error, error) {
	c, why, err := contained(want)
	c.cgroup.close()
	return c.kind, why, err
}
