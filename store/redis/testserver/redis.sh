# shellcheck shell=bash
# Installs Redis for tests: a part of scripts/engines, which has the functions called here.

install_redis() { command -v redis-server >/dev/null || command -v valkey-server >/dev/null || package redis-server; }
