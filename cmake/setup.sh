#!/usr/bin/env bash
# Installs what the build and the tests need and is not there yet: Debian
# packages (cmake/packages.txt) and a Python environment in .venv
# (cmake/requirements.txt and, for the GPU target's headers and ptxas,
# cmake/requirements-cuda.txt). Says what it installs. Quick when nothing is missing.
#
# COMMSIR_NO_INSTALL=1: only report what is missing, and fail if anything is.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

missing_packages() {
  local name
  grep -v '^#' cmake/packages.txt | while read -r name; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q '^install ok installed$' || echo "$name"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "installing packages needs root or sudo. Run as root: apt-get install ${missing[*]}"
  fi
}

# LLVM 22 comes to Debian 12 with the security archive, which a minimal image
# may not list.
add_archive() {
  [ -n "$(apt-cache policy clang-22 2>/dev/null | grep 'Candidate: [0-9]')" ] && return
  say "adding Debian's security archive, which has LLVM 22: /etc/apt/sources.list.d/commsir-security.list"
  echo 'deb http://deb.debian.org/debian-security bookworm-security main' |
    as_root tee /etc/apt/sources.list.d/commsir-security.list >/dev/null
  as_root apt-get update -qq
}

install_packages() {
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  [ -z "${COMMSIR_NO_INSTALL:-}" ] || fail "missing Debian packages: ${missing[*]}. Run apt-get install with them, or make setup without COMMSIR_NO_INSTALL"
  command -v apt-get >/dev/null ||
    fail "this is no Debian; install the equivalents of: ${missing[*]}"
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  as_root apt-get update -qq
  add_archive
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/tmp/commsir-apt.$$ 2>&1 ||
    { tail -20 /tmp/commsir-apt.$$ >&2; fail "apt-get install failed; its last lines are above"; }
  rm -f /tmp/commsir-apt.$$
}

# The environment is rebuilt when the requirements or the interpreter change.
install_python() {
  local stamp=.venv/commsir.sha256 want
  want=$( (cat cmake/requirements*.txt; python3 --version) | sha256sum)
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && .venv/bin/python -c '' 2>/dev/null && return
  [ -z "${COMMSIR_NO_INSTALL:-}" ] || fail "the Python environment .venv is missing or old; run make setup without COMMSIR_NO_INSTALL"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "python3 is $(python3 --version); 3.11 or newer is needed"
  say "making .venv with: $(grep -v '^#' cmake/requirements.txt | tr '\n' ' ')"
  say "and, to compile for GPUs (headers and ptxas; no GPU is needed): $(grep -v '^#' cmake/requirements-cuda.txt | tr '\n' ' ')"
  python3 -m venv --clear .venv
  .venv/bin/pip install -q --disable-pip-version-check -r cmake/requirements.txt
  .venv/bin/pip install -q --disable-pip-version-check --no-deps -r cmake/requirements-cuda.txt
  printf '%s' "$want" >"$stamp"
}

install_packages
install_python
say "everything is there"
