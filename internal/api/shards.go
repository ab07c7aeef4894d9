package api

import (
	"time"

	"github.com/leasehold/leasehold/fence"
)

// ShardSpace is a sharded space: an item of GET /v1/shards, and a row of "leasehold shard list".
type ShardSpace struct {
	Space   string `json:"space"`   // the name of the space
	Hashed  bool   `json:"hashed"`  // true for ranges of 64-bit hashes of keys, false for names
	Slices  int    `json:"slices"`  // how many slices there are
	Unowned int    `json:"unowned"` // how many of them nobody owns
	Moving  int    `json:"moving"`  // how many are to go to another worker
	// The id of the worker that assigns; absent when none does: then nothing moves.
	Assigner  string          `json:"assigner,omitempty"`
	Placement *ShardPlacement `json:"placement,omitempty"` // which worker may own what
}

// ShardPlacement says which worker of a space may own which slices.
type ShardPlacement struct {
	Max int `json:"max,omitempty"` // how many slices a worker owns at most; absent for any number
	// True if each zone owns its share of the slices, however many workers it has.
	SpreadZones bool       `json:"spread_zones,omitempty"`
	Pins        []ShardPin `json:"pins,omitempty"` // the first one that fits a slice counts
}

// ShardPin keeps slices on the workers that it describes.
type ShardPin struct {
	Prefix string            `json:"prefix,omitempty"` // of the names of the slices; absent for all
	Zone   string            `json:"zone,omitempty"`   // the zone of the workers
	Worker string            `json:"worker,omitempty"` // the name or address of the worker
	Labels map[string]string `json:"labels,omitempty"` // what the workers have
}

// ShardSpaces is the answer to GET /v1/shards.
type ShardSpaces struct {
	Spaces []ShardSpace `json:"spaces"` // in the order of their names
}

// ShardStatus is the answer to GET /v1/shards/{space}, and what "leasehold shard status" says: a
// space, its workers, and a page of its slices.
type ShardStatus struct {
	ShardSpace
	Workers []ShardWorker `json:"workers"` // the oldest first
	List    []ShardSlice  `json:"list"`    // a page of the slices, in the order of the map
	// The parameter "after" of the next page, if there is one.
	Next string `json:"next,omitempty"`
}

// ShardWorker is a worker of a space. Its process may have died lately.
type ShardWorker struct {
	Worker   string            `json:"worker"`            // its name
	Holder   string            `json:"holder"`            // the id under which it owns slices
	Session  string            `json:"session"`           // the id of its session
	Address  string            `json:"address,omitempty"` // where callers reach it
	Zone     string            `json:"zone,omitempty"`    // where it is
	Capacity float64           `json:"capacity"`          // in proportion to the others
	Labels   map[string]string `json:"labels,omitempty"`  // what pins go by
	Slices   int               `json:"slices"`            // how many slices it owns
	Coming   int               `json:"coming"`            // how many are to come to it
	Going    int               `json:"going"`             // how many of its own are to leave it
	// The load of its slices, in what it reports, a second; absent when it reports none.
	Load float64 `json:"load,omitempty"`
	// True while it hands all over, since it ends.
	Leaving bool `json:"leaving,omitempty"`
	// True while it hands all over, and gets nothing, since an operator has it drained.
	Drained bool `json:"drained,omitempty"`
	// True if its session is over, or was not renewed for a while, as far as the caller has seen.
	Silent bool      `json:"silent,omitempty"`
	Since  time.Time `json:"since"` // when it joined, by its own wall clock
}

// ShardSlice is a slice of a space, and the answer to GET /v1/shards/{space}/lookup.
type ShardSlice struct {
	Slice string      `json:"slice"`           // its name, or its range
	Token fence.Token `json:"token,omitempty"` // the fencing token; absent if nobody ever owned it
	// When the token was given, by the wall clock of who gave it.
	Since *time.Time `json:"since,omitempty"`
	// The name of its owner; absent when nobody owns it.
	Worker  string `json:"worker,omitempty"`
	Address string `json:"address,omitempty"` // where callers reach the owner
	Holder  string `json:"holder,omitempty"`  // the id of the owner
	Session string `json:"session,omitempty"` // the id of the owner's session
	Next    string `json:"next,omitempty"`    // the name of the worker that it is to go to
	// What its owner is asked to do: split, merge or remove.
	Asked string `json:"asked,omitempty"`
	// Its load, in what its owner reports, a second; absent when that isn't known.
	Load float64 `json:"load,omitempty"`
}

// ShardHistory is the answer to GET /v1/shards/{space}/history.
type ShardHistory struct {
	Space   string        `json:"space"`   // the name of the space
	Changes []ShardChange `json:"changes"` // the newest first
}

// ShardChange is a change of who owns a slice, and a line of "leasehold shard history".
type ShardChange struct {
	Time   time.Time   `json:"time"`             // by the wall clock of who made it
	Slice  string      `json:"slice"`            // the name of the slice, or its range
	Token  fence.Token `json:"token"`            // the token that it gave
	Why    string      `json:"why"`              // given, passed on, freed, taken, split or merged
	Worker string      `json:"worker,omitempty"` // the owner from then on; absent for nobody
	Before string      `json:"before,omitempty"` // the owner before
}

// ShardMoveRequest is the body of POST /v1/shards/{space}/move.
type ShardMoveRequest struct {
	Slice string `json:"slice"` // its name; in a hashed space its range, or a hash in it as 0x…
	// The worker that is to own it, by its name, address, or holder's id.
	To   string   `json:"to"`
	Wait *Seconds `json:"wait,omitempty"` // how long to wait until the worker owns it
}

// ShardDrainRequest is the body of POST /v1/shards/{space}/drain.
type ShardDrainRequest struct {
	Worker string `json:"worker"` // the worker, by its name, address, or holder's id
	// True to let it own slices again; else it is to own none.
	Undo bool     `json:"undo,omitempty"`
	Wait *Seconds `json:"wait,omitempty"` // how long to wait until it owns nothing
}

// ShardSplitRequest is the body of POST /v1/shards/{space}/split.
type ShardSplitRequest struct {
	Slice string `json:"slice"` // its range, or a hash in it as 0x…
	// The first hash of the upper part, as 0x…; absent for the middle.
	At   string   `json:"at,omitempty"`
	Wait *Seconds `json:"wait,omitempty"` // how long to wait until it is cut
}

// ShardMergeRequest is the body of POST /v1/shards/{space}/merge.
type ShardMergeRequest struct {
	// The range that is to be joined with the one after it, or a hash in it as 0x….
	Slice string   `json:"slice"`
	Wait  *Seconds `json:"wait,omitempty"` // how long to wait until they are one
}

// ShardJoinRequest is the body of POST /v1/shards/{space}/workers. Without "shards" and "hashed"
// the space has to be there.
type ShardJoinRequest struct {
	Session string `json:"session"` // the id of the session that is to own slices
	// What the worker calls itself; absent for the session's holder.
	Worker  string `json:"worker,omitempty"`
	Address string `json:"address,omitempty"` // where callers reach it
	Zone    string `json:"zone,omitempty"`    // where it is
	// How much it is to own, in proportion to the others; absent for 1.
	Capacity float64           `json:"capacity,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"` // what pins go by
	// The names of the slices: those that are missing are added.
	Shards []string `json:"shards,omitempty"`
	// True to make a space of 64-bit hashes of keys, if there is none.
	Hashed bool `json:"hashed,omitempty"`
	Slices int  `json:"slices,omitempty"` // how many ranges a new hashed space has; absent for 256
	// How many slices a new space may grow to.
	Expect int `json:"expect,omitempty"`
}

// ShardStepRequest is the body of PUT /v1/shards/{space}/workers/{id}, which may be empty.
type ShardStepRequest struct {
	// The tokens of the slices that the worker has stopped, by slice. It never acts on them again
	// under these tokens.
	Stopped map[string]fence.Token `json:"stopped,omitempty"`
	Leave   bool                   `json:"leave,omitempty"` // true to hand over all
	// True, with leave, to free what no other worker is to have.
	Free bool   `json:"free,omitempty"`
	Seen string `json:"seen,omitempty"` // of the last answer
	// How long to wait until the answer is another one than the one that was seen.
	Wait *Seconds `json:"wait,omitempty"`
}

// ShardHolding is the answer to PUT /v1/shards/{space}/workers/{id}: what a worker owns. The worker
// may act on these slices while its session is valid.
type ShardHolding struct {
	Space  string      `json:"space"`  // the name of the space
	Slices []ShardPart `json:"slices"` // in the order of the map
	// True if the worker has left, and owns nothing: it may close its session.
	Left bool   `json:"left,omitempty"`
	Seen string `json:"seen"` // what the next request says to wait for another answer
}

// ShardPart is a slice that a worker owns.
type ShardPart struct {
	Slice     string      `json:"slice"`     // its name, or its range
	Token     fence.Token `json:"token"`     // the fencing token
	Sequencer string      `json:"sequencer"` // what a request to a guarded resource carries
	// True if the worker is to stop what it does for the slice, and to say so in its next request.
	// It owns the slice until then.
	Goes bool   `json:"goes,omitempty"`
	Next string `json:"next,omitempty"` // the holder's id of the worker that it is to go to
}
