# shellcheck shell=bash
# Installs PostgreSQL for tests: a part of scripts/engines, which has the functions called here.

install_postgres() { # and the pooler that tests put before it
  compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || command -v postgres >/dev/null || package postgresql || return
  command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || package pgbouncer
}
