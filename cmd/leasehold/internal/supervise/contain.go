package supervise

// Contain says how everything that a command started is found and ended.
type Contain string

// The ways, from the strongest to the weakest, and the choice of the strongest that is allowed.
const (
	ContainAuto Contain = "auto"
	// Linux: a control group of the command's own, which the kernel kills as one.
	ContainCgroup Contain = "cgroup"
	// Linux: the group, orphans among the descendants, and what has the mark in its environment.
	ContainDescendants Contain = "descendants"
	ContainGroup       Contain = "group" // the process group
)

// Contains lists them.
var Contains = []Contain{ContainAuto, ContainCgroup, ContainDescendants, ContainGroup}

// EnvMark is the variable that marks what a command starts, so that a guard finds it wherever it
// went: the ids of the supervisors that it runs under, the innermost last.
const EnvMark = "LEASEHOLD_RUN"

// Words says it for people, after "is ended by".
func (c Contain) Words() string {
	switch c {
	case ContainCgroup:
		return "a control group (cgroup.kill)"
	case ContainDescendants:
		return "looking for its descendants"
	}
	return "its process group alone"
}
