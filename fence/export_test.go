package fence

// What the tests outside of the package use too.
type (
	Book        = book
	MemoryMarks = memoryMarks
)
