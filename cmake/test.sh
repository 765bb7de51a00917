#!/usr/bin/env bash
# Runs one test, or the tests that match a name:
#
#   test.sh BUILD NAME
#
# NAME is a file (of lit, of pytest, a unit test in C++, a page), a folder of such
# files, or a regular expression of names of ctest, gtest's included.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "$1") name=$2
python=.venv/bin/python

# Unit tests in C++ are entries of ctest, one for each TEST: those of one file by
# their names.
tests_of() {
  sed -nE 's/^(TEST|TEST_F|TEST_P)\((\w+), (\w+)\).*/\2\\.\3/p' "$1" | paste -sd '|'
}

run_ctest() {
  cd "$build"
  exec ctest --output-on-failure --no-tests=error -j 2 -R "$1"
}

if [ ! -e "$name" ]; then run_ctest "$name"; fi
case $name in
*.md) exec $python test/scripts/run-doc.py --build "$build" "$name" ;;
*.cpp) run_ctest "^($(tests_of "$name"))" ;;
*.py)
  cd "$(dirname "$name")"
  COMMSIR_LIBRARY=${COMMSIR_LIBRARY:-$build/lib} exec "$OLDPWD/$python" -m pytest -q -p no:cacheprovider "$(basename "$name")"
  ;;
*) exec $python "$(sed -n 's/^COMMSIR_LIT:[A-Z]*=//p' "$build/CMakeCache.txt")" -v "$build/$name" ;;
esac
