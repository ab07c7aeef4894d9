module github.com/leasehold/leasehold/fence/fencekubernetes

go 1.26.0

