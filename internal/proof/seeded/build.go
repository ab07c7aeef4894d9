package seeded

// Built reports whether this build has seeded bugs. Package mutate puts another file in the place
// of this one.
const Built = false

// Bug is the one that is on, "" for none.
var Bug string
