module github.com/leasehold/leasehold/store/etcd

go 1.26.0
