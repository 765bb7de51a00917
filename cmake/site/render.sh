#!/usr/bin/env bash
# Renders the documentation as a site that needs no network: render.sh BUILD writes BUILD/site. A broken link,
# or any other warning, is an error. Sphinx is installed in BUILD/site-venv, which this script makes and keeps.
#
# COMMSIR_NO_INSTALL=1: fail if Sphinx is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
venv=$build/site-venv wanted=$(sha256sum cmake/site/requirements.txt | cut -d ' ' -f 1)

if [ "$(cat "$venv/requirements.sha256" 2>/dev/null)" != "$wanted" ]; then
  [ -z "${COMMSIR_NO_INSTALL:-}" ] ||
    { echo "docs: error: $venv is missing or old; run make docs without COMMSIR_NO_INSTALL" >&2; exit 1; }
  echo "docs: installing Sphinx into $venv"
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check --no-deps -r cmake/site/requirements.txt
  echo "$wanted" >"$venv/requirements.sha256"
fi
"$venv/bin/sphinx-build" -q -W --keep-going -c cmake/site -d "$build/site-doctrees" . "$build/site"
echo "docs: $build/site/index.html"
