module github.com/leasehold/leasehold/examples/embedded

go 1.26.0
