// Package browsertest tests the lock server's page in a real browser, Chromium without a window:
// what it shows, that it is live, what a click does, and that it is fit for keyboards and screen
// readers. It is a module of its own, so that the server needs no browser's client.
package browsertest
