# shellcheck shell=bash
# Installs etcd for tests: a part of scripts/engines, which has the functions called here.

install_etcd() { build etcd "" etcd=. etcdctl=go.etcd.io/etcd/etcdctl/v3; }
