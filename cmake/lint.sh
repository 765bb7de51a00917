#!/usr/bin/env bash
# Style: clang-format and clang-tidy for C++, ruff and mypy for Python, spelling
# and wording for all. Prints its findings, and ends with 1 if there are any.
set -u
cd "$(dirname "$0")/.."
build=${1:-build}
status=0
git ls-files '*.h' '*.cpp' | xargs clang-format-22 --dry-run -Werror || status=1
git ls-files ':!:*.json' ':!:*.npy' ':!:*.png' ':!:LICENSE' ':!:test/corpus' ':!:test/fuzz/corpus' ':!:cmake/*.txt' |
  xargs .venv/bin/codespell || status=1
git ls-files '*.h' '*.cpp' '*.cu' '*.td' '*.def' '*.mlir' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' ':!test/corpus' \
  ':!cmake/spell-identifiers.py' | xargs .venv/bin/python cmake/spell-identifiers.py || status=1
git ls-files ':!docs/history' ':!docs/results/*.md' ':!CHANGELOG.md' ':!cmake/wording.py' ':!test/scripts/test_wording.py' \
  ':!*.json' ':!*.npy' ':!*.png' ':!test/corpus' ':!test/fuzz/corpus' | xargs .venv/bin/python cmake/wording.py || status=1
.venv/bin/ruff format -q --check . || status=1
.venv/bin/ruff check -q . || status=1
.venv/bin/mypy --no-error-summary $(git ls-files '*.py' ':!:*lit.cfg.py' ':!:test/corpus') || status=1
if [ "${LINT_TIDY:-1}" = 1 ]; then
  git ls-files 'dialect/*.cpp' 'lowering/*.cpp' 'runtime/*.cpp' 'tools/*.cpp' 'frontend/*.cpp' ':!runtime/torch/torchcomms' |
    xargs -P2 -n4 clang-tidy-22 -p "$build" --quiet 2>/dev/null || status=1
fi
exit $status
