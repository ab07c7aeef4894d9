module github.com/leasehold/leasehold/internal/proof/sim

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/leasehold/leasehold v0.0.0
	go.uber.org/goleak v1.3.0
)

require golang.org/x/sys v0.50.0 // indirect
