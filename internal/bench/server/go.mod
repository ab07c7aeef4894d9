module github.com/leasehold/leasehold/internal/bench/server

go 1.26.0

require github.com/leasehold/leasehold v0.0.0
