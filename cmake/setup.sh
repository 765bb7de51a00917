#!/usr/bin/env bash
# Installs missing packages, and says which. Takes little time if none is
# missing.
#
#   setup.sh        packages for the build, the tests and lint
#   setup.sh demo   only those for `make demo`
#   setup.sh models all, and those for `make models`
#
# That is: Debian packages (cmake/packages-demo.txt, cmake/packages.txt), a Python
# environment in .venv (cmake/requirements.txt and, for the GPU target's headers
# and ptxas, cmake/requirements-cuda.txt; the demo: the packages of
# cmake/requirements-demo.txt in the same versions), and in it the Python package
# of this checkout, editable: .venv/bin/python has `import commsir`, and torch
# finds the backend.
#
# COMMSIR_NO_INSTALL=1: only report what is missing, and fail if anything is.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# A whole environment stays whole: what is built may use all of it.
[ "$what" != demo ] || [ ! -f .venv/commsir.sha256 ] || what=all

case $what in
  all | models) packages=(cmake/packages-demo.txt cmake/packages.txt) ;;
  demo) packages=(cmake/packages-demo.txt) ;;
  *) fail "there is no part '$what': setup.sh, setup.sh demo, or setup.sh models" ;;
esac

missing_packages() {
  local name
  grep -hv '^#' "${packages[@]}" | while read -r name; do
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

# GPUs are used where there is a driver; the demo then has the GPU target, too.
has_driver() { ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; }

pip_install() { .venv/bin/python -m pip install -q --disable-pip-version-check "$@"; }

# A stamp in .venv holds the hash of what it was made from.
is_made() { [ -f ".venv/$1" ] && [ "$(cat ".venv/$1")" = "$2" ] && .venv/bin/python -c '' 2>/dev/null; }

must_install() { [ -z "${COMMSIR_NO_INSTALL:-}" ] || fail "$1; run make setup without COMMSIR_NO_INSTALL"; }

make_environment() {
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "python3 is $(python3 --version); 3.11 or newer is needed"
  rm -f .venv/commsir.*
  python3 -m venv --clear .venv
}

names() { grep -hv '^#' "$@" | tr '\n' ' '; }

# The environment is rebuilt when the requirements or the interpreter change. That
# of the demo becomes the whole one.
install_python() {
  local all=commsir.sha256 demo=commsir.demo.sha256 want_all want_demo
  local demo_files=(cmake/requirements-demo.txt)
  ! has_driver || demo_files+=(cmake/requirements-cuda.txt)
  want_all=$( (cat cmake/requirements-cuda.txt cmake/requirements.txt; python3 --version) | sha256sum)
  want_demo=$( (cat "${demo_files[@]}" cmake/requirements.txt; python3 --version) | sha256sum)
  is_made $all "$want_all" && return
  [ "$what" != demo ] || ! is_made $demo "$want_demo" || return 0
  must_install "the Python environment .venv is missing or old"
  if [ -f .venv/$all ] || ! is_made $demo "$want_demo"; then make_environment; fi
  if [ "$what" = demo ]; then
    say "putting into .venv: $(names "${demo_files[@]}")"
    pip_install -c cmake/requirements.txt -r cmake/requirements-demo.txt
    ! has_driver || pip_install --no-deps -r cmake/requirements-cuda.txt
    printf '%s' "$want_demo" >.venv/$demo
    return
  fi
  say "putting into .venv: $(names cmake/requirements.txt)"
  say "and, to compile for GPUs (headers and ptxas; no GPU is needed): $(names cmake/requirements-cuda.txt)"
  pip_install -r cmake/requirements.txt
  pip_install --no-deps -r cmake/requirements-cuda.txt
  printf '%s' "$want_all" >.venv/$all
}

# None of the versions that are there changes.
install_models() {
  local stamp=commsir.models.sha256 want
  [ "$what" = models ] || return 0
  want=$(cat cmake/requirements-models.txt .venv/commsir.sha256 | sha256sum)
  is_made $stamp "$want" && return
  must_install "the packages of cmake/requirements-models.txt are missing in .venv or old"
  say "putting into .venv: $(names cmake/requirements-models.txt)"
  pip_install -c cmake/requirements.txt -r cmake/requirements-models.txt
  printf '%s' "$want" >.venv/$stamp
}

# Needs no network: frontend/make_wheel.py is its build backend. What the package
# says of itself is installed; its files are used where they are. A wheel that was
# installed since then is replaced.
install_package() {
  local stamp=commsir.package.sha256 want
  want=$( (pwd; cat frontend/pyproject.toml frontend/make_wheel.py; grep '^project(' CMakeLists.txt) | sha256sum)
  is_made $stamp "$want" && compgen -G '.venv/lib/python3*/site-packages/__editable__.commsir.pth' >/dev/null && return
  must_install "the Python package of this checkout is not installed in .venv"
  say "installing the Python package of this checkout into .venv (editable)"
  pip_install --no-index --no-deps --no-build-isolation -e frontend
  printf '%s' "$want" >.venv/$stamp
}

install_packages
install_python
install_models
install_package
say "everything is there"
