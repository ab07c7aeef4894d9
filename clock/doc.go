// Package clock is the source of time.
//
// Deadlines need a clock that no one sets and that counts while the machine sleeps. [time.Now] is
// not that clock: its monotonic reading stops during suspension on Linux and macOS. A holder that
// was suspended past the end of its lease would find time left on the lease. [System] reads instead
//
//   - on Linux, CLOCK_BOOTTIME, which counts suspension;
//   - on macOS, CLOCK_MONOTONIC, which counts sleep there;
//   - on Windows, GetTickCount64, which counts sleep and hibernation, at a resolution of 16 ms
//     ([Resolution]), which holders and takers allow for;
//   - on FreeBSD, OpenBSD and NetBSD, CLOCK_MONOTONIC, which counts sleep or not, depending on the
//     kernel;
//   - elsewhere, the monotonic clock of the Go runtime, which may not count suspension at all.
//
// Where suspension is not counted, a lease on a machine that is suspended can seem valid
// afterwards. The guarded resource checks the token, and still refuses the machine's writes.
//
// No clock counts the time for which a host pauses a virtual machine, or for which the machine was
// a snapshot. Under KVM, CLOCK_BOOTTIME stands still with the rest of the guest. Afterwards
// somebody may set the guest's wall clock. The guest can see only that. See "Paused machines" in
// package lease.
//
// # The drift bound
//
// Two clocks never run at the same rate. Let each be off by at most ρ. A holder counts TTL·(1−δ),
// and a taker counts the whole TTL from a later start. The holder stops before the taker starts if
// δ ≥ 2ρ/(1+ρ). Time daemons slew a clock by up to 8 % (chrony's default is 8.33 %), so a bound of
// 1 % is no bound. The default of δ = 0.2 covers 11 %.
package clock
