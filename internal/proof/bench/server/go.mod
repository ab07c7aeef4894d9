module github.com/leasehold/leasehold/internal/proof/bench/server

go 1.26.0

require github.com/leasehold/leasehold v0.0.0

require golang.org/x/sys v0.50.0 // indirect
