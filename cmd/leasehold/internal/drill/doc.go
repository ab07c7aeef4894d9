// Package drill is a game day for a pair of instances that stand by for each other: it makes faults
// one after the other, measures how long nobody serves, counts writes that the wrong side accepted,
// undoes what it did, and writes a report. It makes the faults through commands of the operator, or
// on two instances of its own ([Rehearsal]).
package drill
