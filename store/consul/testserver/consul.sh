# shellcheck shell=bash
# Installs Consul for tests: a part of scripts/engines, which has the functions called here.

install_consul() { build consul "" consul=github.com/hashicorp/consul; }
