module github.com/leasehold/leasehold/store/file

go 1.26.0
