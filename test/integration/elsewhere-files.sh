#!/bin/sh
# Writes the inputs of use-elsewhere.sh to the folder $1: the demo's kernels and
# arrays, made by this build's Python ($PYTHON, or .venv's).
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
cp "$source"/test/demo/*.mlir "$source/test/tools/Inputs/sum.mlir" "$1"
PYTHONPATH=$source/test/demo PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-$source/.venv/bin/python}" -c '
import pathlib, sys
import demo
demo.save_digits(pathlib.Path(sys.argv[1]), demo.RANKS)' "$1"
