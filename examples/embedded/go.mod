module github.com/leasehold/leasehold/examples/embedded

go 1.26.0

require (
	github.com/leasehold/leasehold v0.0.0
	github.com/leasehold/leasehold/store/file v0.0.0
)
