package ids

// event is something that happened.
type event string

const (
	started        event = "processes started"
	claimed        event = "values claimed"
	exhausted      event = "claims of an exhausted pool"
	crashed        event = "crashes"
	released       event = "releases"
	releaseFailed  event = "releases that failed"
	sessionClosed  event = "sessions closed without a release"
	forgotten      event = "values forgotten"
	givenUp        event = "values given up since they were too far ahead of the clock"
	leaseLost      event = "leases found lost"
	lateBatch      event = "batches of ids without a valid lease"
	windowEnds     event = "batches refused: the window ends"
	tooFarAhead    event = "batches refused: too far ahead of the clock"
	paused         event = "machines paused or suspended"
	frozen         event = "machines suspended without their clocks' knowledge"
	stoppedBetween event = "stops between a look at the clock and the id"
	clockWrong     event = "clocks set wrong, by up to a day"
	clockRight     event = "clocks set right"
	rateChanged    event = "clocks running wrong, by up to 5 %"
	cutOff         event = "machines cut off"
	storeOut       event = "store outages"
	lostRequest    event = "lost requests"
	lostReply      event = "lost replies"
	lateWrite      event = "late or repeated writes"
)

// everything is what has to happen in a run that is worth it.
var everything = []event{
	started, claimed, exhausted, crashed, released, releaseFailed,
	sessionClosed, forgotten, givenUp, leaseLost, lateBatch, windowEnds,
	tooFarAhead, paused, frozen, stoppedBetween, clockWrong, clockRight,
	rateChanged, cutOff, storeOut, lostRequest, lostReply, lateWrite,
}
