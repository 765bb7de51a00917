#!/usr/bin/env bash
# Runs make targets in a fresh clone inside a bare Debian 12, as a newcomer would:
#   test/integration/bare-debian.sh DIR [TARGET…]      (default: demo test)
# DIR/base is made by debootstrap and kept; DIR/root is a copy that is thrown
# away. Needs root and the debootstrap package. Prints the seconds of each target.
set -euo pipefail

dir=${1:?usage: bare-debian.sh DIR [TARGET…]}
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(demo test)
source=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
root=$dir/root

cleanup() {
  for mount in proc sys dev/shm dev/pts dev; do
    mountpoint -q "$root/$mount" && umount -l "$root/$mount"
  done
  true
}
trap cleanup EXIT

mkdir -p "$dir"
if [ ! -e "$dir/base/etc/debian_version" ]; then
  debootstrap --variant=minbase --include=ca-certificates,git,make bookworm "$dir/base"
fi
cleanup
rm -rf --one-file-system "$root"
cp -a "$dir/base" "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# Debian's installer writes one, debootstrap does not: torchrun asks for this machine's name.
cp /etc/hosts "$root/etc/hosts"
# How this machine reaches Debian and PyPI is part of the machine, not of the test.
cp -r /etc/apt/apt.conf.d "$root/etc/apt/"
[ -e /etc/pip.conf ] && cp /etc/pip.conf "$root/etc/pip.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount --bind /dev "$root/dev"
mount -t devpts devpts "$root/dev/pts" 2>/dev/null || true
mountpoint -q "$root/dev/shm" || mount -t tmpfs tmpfs "$root/dev/shm"

git clone -q "$source" "$root/root/commsir"
environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8)
for name in http_proxy https_proxy HTTP_PROXY HTTPS_PROXY no_proxy PIP_INDEX_URL PIP_CERT SSL_CERT_FILE; do
  [ -n "${!name:-}" ] && environment+=("$name=${!name}")
done
for target in "${targets[@]}"; do
  start=$SECONDS
  echo "== make $target"
  chroot "$root" env -i "${environment[@]}" make -C /root/commsir "$target"
  echo "== make $target: $((SECONDS - start)) s"
done
