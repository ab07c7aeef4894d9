#include "textflag.h"

// _leasehold_entry is that of entry_linux_amd64.s.
TEXT _leasehold_entry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVD	0(RSP), R0 // argc
	CMP	$2, R0
	BNE	start
	MOVD	16(RSP), R0 // argv[1]
	MOVD	(R0), R0
	MOVD	$0x0064726175675f5f, R1 // Arg, with the zero after it
	CMP	R0, R1
	BNE	start
	SUB	$32, RSP

	MOVD	$1, R0 // struct sigaction: SIG_IGN, and no more
	MOVD	R0, 0(RSP)
	MOVD	ZR, 8(RSP)
	MOVD	ZR, 16(RSP)
	MOVD	ZR, 24(RSP)
	MOVD	$0x940e, R9 // a bit for each number of a signal: 1, 2, 3, 10, 12, 15
ignore:
	RBIT	R9, R0
	CLZ	R0, R0 // the number
	SUB	$1, R9, R1
	AND	R1, R9
	MOVD	RSP, R1
	MOVD	$0, R2
	MOVD	$8, R3 // bytes in a set of signals
	MOVD	$134, R8 // rt_sigaction
	SVC
	CBNZ	R9, ignore

	MOVD	ZR, 0(RSP) // struct pollfd: standard input, and no event but its end
	MOVD	ZR, 16(RSP) // struct timespec
	MOVD	$50000000, R0
	MOVD	R0, 24(RSP)
	MOVD	RSP, R0
	MOVD	$1, R1
	ADD	$16, RSP, R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$73, R8 // ppoll
	SVC

	ADD	$32, RSP
start:
	JMP	_rt0_arm64_linux(SB)
