module github.com/leasehold/leasehold/fence/fencedynamodb

go 1.26.0

