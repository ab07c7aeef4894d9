#include "textflag.h"

// _leasehold_entry is where a program that is linked with -ldflags='-E _leasehold_entry' starts. If
// it is a guard, started with Argv, it waits here, with the signals of guardMain ignored, until its
// supervisor has ended or 50 ms have passed: half of the shortest TTL. Then, or else, the runtime
// starts as ever.
TEXT _leasehold_entry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	CMPQ	0(SP), $2 // argc
	JNE	start
	MOVQ	16(SP), AX // argv[1]
	MOVQ	$0x0064726175675f5f, BX // Arg, with the zero after it
	CMPQ	0(AX), BX
	JNE	start
	SUBQ	$32, SP

	MOVQ	$1, 0(SP) // struct sigaction: SIG_IGN, and no more
	MOVQ	$0, 8(SP)
	MOVQ	$0, 16(SP)
	MOVQ	$0, 24(SP)
	MOVQ	$0x940e, BX // a bit for each number of a signal: 1, 2, 3, 10, 12, 15
ignore:
	BSFQ	BX, DI // the number
	BTRQ	DI, BX
	MOVQ	SP, SI
	MOVQ	$0, DX
	MOVQ	$8, R10 // bytes in a set of signals
	MOVQ	$13, AX // rt_sigaction
	SYSCALL
	TESTQ	BX, BX
	JNE	ignore

	MOVQ	$0, 0(SP) // struct pollfd: standard input, and no event but its end
	MOVQ	$0, 16(SP) // struct timespec
	MOVQ	$50000000, 24(SP)
	MOVQ	SP, DI
	MOVQ	$1, SI
	LEAQ	16(SP), DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	MOVQ	$271, AX // ppoll
	SYSCALL

	ADDQ	$32, SP
start:
	JMP	_rt0_amd64_linux(SB)
