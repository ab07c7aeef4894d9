module github.com/leasehold/leasehold/cmd/leasehold

go 1.26.0
