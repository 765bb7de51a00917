#!/usr/bin/env bash
# Tests another release of torch than the one that cmake/requirements.txt names:
#   test/integration/another-torch.sh VERSION [PART…]
# Parts: ops compile c10d lasting ending windows programs suite docs wheel; by
# default all but suite and docs, which take long, and wheel. Needs a build, and
# 8 GB for build/torch-VERSION, which is kept: a venv of $PYTHON (python3), a
# copy of the libraries, and the C++ backend built for that torch. `wheel` tests the
# files that `make wheel TORCH=…` has prebuilt, without a compiler. Not part of CI.
set -uo pipefail

version=${1:?usage: another-torch.sh VERSION [PART…]}
shift
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(ops compile c10d lasting ending windows programs)
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
build=$root/build
dir=$build/torch-$version
python=$dir/venv/bin/python
tests=$root/test/python/torch

if [ ! -e "$dir/ready" ]; then
  rm -rf "$dir"
  mkdir -p "$dir"
  "${PYTHON:-python3}" -m venv "$dir/venv" || exit
  grep -v '^torch==' "$root/cmake/requirements.txt" |
    "$python" -m pip install -q "torch==$version" -r /dev/stdin || exit
  ln -s "$build/bin" "$dir/bin"
  touch "$dir/ready"
fi
export PYTHONPATH=$root/frontend COMMSIR_LIBRARY=$dir/lib COMMSIR_CACHE_DIR=$dir/cache
export PYTHONDONTWRITEBYTECODE=1 TORCHINDUCTOR_COMPILE_THREADS=1

# Built as for a user who has this torch; then it lies where prebuilt ones do.
build_backend() {
  local built from to
  mkdir -p "$dir/lib"
  cp -ru "$build"/lib/*.so "$dir/lib"
  built=$(cd / && COMMSIR_TORCH_BACKEND=build "$python" -c "
import sysconfig, torch, commsir.torch
from commsir.torch import _release, backend
name, suffix = _release.name_of(torch.__version__), sysconfig.get_config_var('EXT_SUFFIX')
print(backend.load_module().__spec__.origin, f'libcommsir_c10d.torch-{name}{suffix}')") || return
  read -r from to <<<"$(tail -n 1 <<<"$built")"
  cp "$from" "$dir/lib/$to"
}
if [ "${parts[*]}" != wheel ]; then build_backend || exit; fi

failed=()
run() { # NAME COMMAND…
  local name=$1 start=$SECONDS
  shift
  if "$@" >"$dir/$name.log" 2>&1; then
    echo "torch $version: $name: $(tail -n 1 "$dir/$name.log"), $((SECONDS - start)) s"
  else
    echo "torch $version: $name FAILED, see $dir/$name.log"
    failed+=("$name")
  fi
}
check() { # NAME ARGUMENT…
  local name=$1
  shift
  run "$name" "$python" -m pytest -q -p no:cacheprovider --basetemp "$dir/tmp" "$@"
}
# As users have it: the wheel alone, its prebuilt backend, and no compiler.
wheel() (
  rm -rf "$dir/wheel"
  "$python" -m pip install -q --no-deps --target "$dir/wheel" "$build"/wheel/commsir-*.whl || exit
  bare=(env -i "HOME=$HOME" "PATH=$dir/venv/bin" "PYTHONPATH=$dir/wheel" PYTHONDONTWRITEBYTECODE=1
    "COMMSIR_CACHE_DIR=$dir/wheel/cache" COMMSIR_TORCH_BACKEND=cpp OMP_NUM_THREADS=1)
  cd "$dir" || exit
  "${bare[@]}" torchrun --nproc-per-node 4 "$root/test/integration/plain-program.py" || exit
  "${bare[@]}" "$python" -m pytest -q -p no:cacheprovider --basetemp "$dir/tmp" "$tests/c10d/test_backend.py"
)

for part in "${parts[@]}"; do
  case $part in
  ops | compile) check "$part" "$tests/ops/test_$part.py" ;;
  c10d | lasting | ending)
    file=$tests/c10d/test_${part/c10d/backend}.py
    check "$part" "$file"
    ;;
  windows) check windows "$tests/c10d/test_windows.py" "$tests/c10d/test_interop.py" ;;
  programs) check programs "$tests/examples" ;;
  suite) check suite "$tests/c10d/test_torch_suite.py" ;;
  docs)
    run docs "$python" "$root/test/scripts/run-doc.py" --build "$dir" --with-torch "$root"/docs/*.md "$root/README.md"
    ;;
  wheel) run wheel wheel ;;
  *) echo "another-torch.sh: no part $part" >&2 && exit 2 ;;
  esac
done
[ ${#failed[@]} -eq 0 ]
