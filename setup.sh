#!/usr/bin/env bash
# Installs what clefkit needs (Debian/Ubuntu with apt, macOS with Homebrew), builds it, and answers
# an example question.
#
#   ./setup.sh              everything
#   ./setup.sh --packages   only install the packages
#   ./setup.sh --build      packages and build, no example
#   ./setup.sh --tests      packages, and those without which tests are skipped: Chromium (Debian)
#                           for the playground, Node.js and npm for clients, GNUstep (Debian) for
#                           the code that speaks to the Neural Engine
set -euo pipefail
cd "$(dirname "$0")"

DEBIAN_PACKAGES=(
  g++ cmake ninja-build pkg-config python3 python3-venv xz-utils
  libboost1.81-dev libspdlog-dev libzstd-dev                    # the server
  libfmt-dev libssl-dev libtbb-dev libhwy-dev libcli11-dev libutf8proc-dev libpcre2-dev
  libjpeg-dev libpng-dev libwebp-dev libgif-dev libseccomp-dev   # pictures
  libavformat-dev libavcodec-dev libavutil-dev libswscale-dev            # clips
  libgtest-dev libgmock-dev libbenchmark-dev libopenblas-dev   # tests and benchmarks
  clang libclang-rt-14-dev                                     # fuzz targets
)
TEST_PACKAGES=(
  chromium chromium-driver
  gobjc libgnustep-base-dev   # the stand-in for Apple's framework
)
HOMEBREW_PACKAGES=(
  cmake ninja pkg-config boost spdlog zstd fmt openssl@3 tbb highway cli11 utf8proc pcre2 googletest
  jpeg-turbo libpng webp giflib ffmpeg
  google-benchmark openblas xz
)

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0"; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install_debian() {
  local missing=() package
  for package in "$@"; do
    # clang's run-time library carries the version of the distribution's clang.
    if [ "$package" = libclang-rt-14-dev ] && ! apt-cache show "$package" >/dev/null 2>&1; then
      package=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/libclang-rt-\1-dev/p' | head -1)
      [ -n "$package" ] || continue
    fi
    # Debian 12 has an older Boost beside 1.81; later releases have a newer one instead.
    if [ "$package" = libboost1.81-dev ] && ! apt-cache show "$package" >/dev/null 2>&1; then
      package=libboost-dev
    fi
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "packages: all $# are installed"
    return
  fi
  echo "packages: installing ${missing[*]}"
  as_root apt-get update -qq
  DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

install_packages() {
  if command -v apt-get >/dev/null; then
    install_debian "${DEBIAN_PACKAGES[@]}"
  elif command -v brew >/dev/null; then
    brew install --quiet "${HOMEBREW_PACKAGES[@]}"
  else
    echo "setup.sh: found neither apt-get nor brew; install these yourself: ${DEBIAN_PACKAGES[*]}" >&2
    exit 1
  fi
}

install_test_packages() {
  # A node of one's own, from wherever, will do.
  local packages=("${TEST_PACKAGES[@]}")
  command -v npm >/dev/null || packages+=(nodejs npm)
  if command -v apt-get >/dev/null; then install_debian "${packages[@]}"; else brew install --quiet node; fi
}

build() {
  if command -v brew >/dev/null && [ -z "${OPENSSL_ROOT_DIR:-}" ]; then
    OPENSSL_ROOT_DIR=$(brew --prefix openssl@3)
    export OPENSSL_ROOT_DIR
  fi
  if [ -z "${CLEFKIT_COMPILER_LAUNCHER:-}" ] && command -v ccache >/dev/null; then
    export CLEFKIT_COMPILER_LAUNCHER=ccache
  fi
  cmake --preset release >build-configure.log 2>&1 || { cat build-configure.log >&2; exit 1; }
  rm -f build-configure.log
  cmake --build --preset release
}

example() {
  echo
  echo "An example: two questions, answered by the small model that ships with clefkit"
  echo
  build/clefkit ask --state "My card was charged twice for the same order. Please send the money back." \
    --noul "refund=Is the writer asking for a refund?" \
    --choice "team: Which team is this message for?=billing: anything about a payment or bill|delivery: late or lost packages|careers: interviews and work"
}

case "${1:-}" in
  "") install_packages; build; example ;;
  --packages) install_packages ;;
  --tests) install_packages; install_test_packages ;;
  --build) install_packages; build ;;
  -h|--help) usage ;;
  *) echo "setup.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
esac
