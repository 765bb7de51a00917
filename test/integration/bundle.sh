#!/usr/bin/env bash
# Checks an archive of programs that travels:
#   test/integration/bundle.sh commsir-bundle.tar.xz
# its size, what of glibc it needs, and that it runs with an empty environment.
set -euo pipefail

bundle=${1:?usage: bundle.sh ARCHIVE}
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "bundle.sh: error: $*" >&2; exit 1; }

bytes=$(stat -c %s "$bundle")
[ "$bytes" -le 40000000 ] || fail "it has $bytes bytes, more than 40 MB"
tar -C "$folder" -xf "$bundle"
for program in "$folder"/bin/*; do
  name=$(basename "$program")
  needed=$(readelf -dW "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev '^(libc|libm|ld-linux-x86-64)\.so' || true)
  [ -z "$needed" ] || fail "$name needs $needed, which a host may not have"
  newest=$(readelf --dyn-syms -W "$program" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -1)
  [ "$(printf '%s\nGLIBC_2.35\n' "$newest" | sort -V | tail -1)" = GLIBC_2.35 ] || fail "$name needs $newest, not 2.35"
  env -i "$program" --version >/dev/null || fail "$name does not run"
done
cd "$folder"
env -i HOME="$folder" bin/comms-run "$source/test/tools/Inputs/sum.mlir" --ranks 3 --input x=iota >said ||
  fail "comms-run ends with status $?"
grep -q '^sum: 3 ranks' said || fail "comms-run says: $(cat said)"
echo "$(basename "$bundle"): $bytes bytes; $(cd bin && echo *), runs with nothing but glibc 2.35"
