# shellcheck shell=bash
# Installs NATS for tests: a part of scripts/engines, which has the functions called here.

install_nats() { build nats "" nats-server=github.com/nats-io/nats-server/v2; }
