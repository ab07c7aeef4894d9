module github.com/leasehold/leasehold/fence/fenceredis

go 1.26.0

