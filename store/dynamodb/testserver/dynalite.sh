# shellcheck shell=bash
# Installs dynalite, an emulator of DynamoDB, for tests: a part of scripts/engines, which has the functions called here.

install_dynalite() {
  local version=4.0.0 dir
  if ! command -v npm >/dev/null || [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
    say "dynalite is left out: it needs npm and Node.js 20"
    return
  fi
  current dynalite "$version" && return
  dir=$(mktemp -d "$servers/.new-dynalite-XXXXXX") || return
  quietly "downloading dynalite" npm install --loglevel=error --no-audit --no-fund --no-save --prefix "$dir" "dynalite@$version" ||
    { rm -rf "$dir"; return 1; }
  replace dynalite "$dir" "$version"
}
