# shellcheck shell=bash
# Installs ZooKeeper for tests: a part of scripts/engines, which has the functions called here.

install_zookeeper() {
  command -v java >/dev/null || package default-jre-headless || return
  [ -e /usr/share/java/zookeeper.jar ] || package zookeeper
}
