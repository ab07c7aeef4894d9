package memory

import "maps"

// Snapshot is what a [DB] had at one moment.
type Snapshot struct{ rows map[string]row }

// Snapshot returns the records that are stored now, for [DB.Restore].
func (db *DB) Snapshot() Snapshot {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return Snapshot{maps.Clone(db.rows)}
}

// Restore brings back what a snapshot took, versions and all, as a failover to what has not heard
// of the rest does. The snapshot may be of another DB. No version that came after it is given
// again. Waiters are woken.
func (db *DB) Restore(s Snapshot) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.rows = maps.Clone(s.rows)
	for key := range db.watches {
		db.wake(key)
	}
}
