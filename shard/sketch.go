package shard

// sketch finds the busy keys of a slice in little space: Space-Saving (Metwally, Agrawal and
// El Abbadi, 2005). A key with more than 1/sketchSize of what was added is in it.
type sketch struct {
	n        int
	counters [sketchSize]counter
}

const sketchSize = 8

// counter is of one key. What was added for the key is count at most, and count-over at least.
type counter struct {
	hash        uint64
	count, over float64
}

func (c counter) least() float64 { return c.count - c.over }

// add adds n for a key.
func (s *sketch) add(hash uint64, n float64) {
	smallest := 0
	for i := range s.n {
		c := &s.counters[i]
		if c.hash == hash {
			c.count += n
			return
		}
		if c.count < s.counters[smallest].count {
			smallest = i
		}
	}
	if s.n < sketchSize {
		s.counters[s.n] = counter{hash: hash, count: n}
		s.n++
		return
	}
	c := &s.counters[smallest]
	*c = counter{hash: hash, count: c.count + n, over: c.count}
}

// top returns the counters; s may be nil.
func (s *sketch) top() []counter {
	if s == nil {
		return nil
	}
	return s.counters[:s.n]
}

// clear forgets all; s may be nil.
func (s *sketch) clear() {
	if s != nil {
		s.n = 0
	}
}
