package lease

// SetOwner gives m the owner id of another manager, as a clone of its process has it.
func (m *Manager) SetOwner(owner string) { m.owner = owner }

// Adopt gives m what from remembers of names, as a clone of its process does.
func (m *Manager) Adopt(from *Manager) {
	for key, r := range from.memory {
		m.memory[key] = r
	}
}

// Remembered returns how many names m remembers.
func (m *Manager) Remembered() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.memory)
}

// The bounds that tests go up to.
const (
	MaxMemory   = maxMemory
	EventBuffer = eventBuffer
)
