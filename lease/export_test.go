package lease

import "github.com/leasehold/leasehold/internal/drive"

// SetOwner gives m the owner id of another manager, as a clone of its process has it.
func (m *Manager) SetOwner(owner string) { m.owner = owner }

// Adopt gives m what from remembers of names, as a clone of its process does.
func (m *Manager) Adopt(from *Manager) { m.memory = from.memory.Clone() }

// Remembered returns how many names m remembers.
func (m *Manager) Remembered() int { return m.memory.Len() }

// The bounds that tests go up to.
const (
	MaxMemory   = drive.MaxNames
	EventBuffer = eventBuffer
)

// HostPart returns a host's name as it may stand in an owner id.
var HostPart = hostPart
