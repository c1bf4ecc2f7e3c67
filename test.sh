#!/usr/bin/env bash
# Builds what is missing and runs the tests.
#
#   ./test.sh               unit, golden and command line tests; each fuzz target for some seconds
#   ./test.sh --sanitizers  the same, then the unit tests under ASan+UBSan and under TSan
#   ./test.sh --slow        only what takes minutes to hours (CTest label `slow`)
#   ./test.sh --fuzz N      only the fuzz targets, N seconds each
set -euo pipefail
cd "$(dirname "$0")"

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }

run_release() {
  ./setup.sh --build
  python3 tools/check_includes.py
  ctest --test-dir build --output-on-failure -LE slow -j "$(getconf _NPROCESSORS_ONLN)"
}

run_sanitizer() {
  if command -v ccache >/dev/null; then export CLEFKIT_COMPILER_LAUNCHER=${CLEFKIT_COMPILER_LAUNCHER:-ccache}; fi
  cmake --preset "$1" >/dev/null
  cmake --build --preset "$1"
  ctest --test-dir "build-$1" --output-on-failure -LE slow -j "$(getconf _NPROCESSORS_ONLN)"
}

run_fuzzers() {
  if ! command -v clang++ >/dev/null || [ "$(uname)" != Linux ]; then
    echo "fuzz targets: skipped, they need clang++ on Linux"
    return
  fi
  if command -v ccache >/dev/null; then export CLEFKIT_COMPILER_LAUNCHER=${CLEFKIT_COMPILER_LAUNCHER:-ccache}; fi
  cmake --preset fuzz >/dev/null
  cmake --build --preset fuzz --target fuzzers
  tools/fuzz.sh "$1"
}

case "${1:-}" in
  "") run_release; run_fuzzers 3 ;;
  --sanitizers) run_release; run_fuzzers 3; run_sanitizer asan; run_sanitizer tsan ;;
  --slow) ./setup.sh --build; ctest --test-dir build --output-on-failure -L slow ;;
  --fuzz) run_fuzzers "${2:?seconds}" ;;
  -h|--help) usage ;;
  *) echo "test.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
esac
