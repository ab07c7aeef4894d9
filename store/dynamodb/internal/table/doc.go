// Package table is raw access to the rows of one DynamoDB table: strong reads, and conditional
// writes whose outcome is known or said to be unknown.
//
// The client's own retries are turned off for the requests made here. Each attempt has a time limit
// of its own, and what became of it is told from its error, so that after several attempts it is
// still known whether one of them may have been carried out:
//
//	refused  the server said no, or the request never left: not done
//	later    throttled, or a conflict between Regions, or a clock that the client has now corrected: not done, tried again
//	unclear  no answer, a broken one, or a fault inside the server: perhaps done, tried again
//
// A write that is tried again after an unclear attempt may meet its own first attempt. Its
// condition fails then, on a row that mine, a function that the caller gives, recognises: that is
// success. If it meets another row, the first attempt may have been carried out and overwritten
// since, so the outcome is unknown.
//
// A write whose condition also holds where there is no row is not sent again after an unclear
// attempt. A second copy could be done, and its row be deleted. The first copy, if it came only
// then, would find its condition fulfilled, and bring the deleted row back. So a read looks for the
// row instead. If the read finds it, that is success, else the outcome is unknown.
package table
