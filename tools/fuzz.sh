#!/usr/bin/env bash
# Runs every libFuzzer target of build-fuzz for N seconds (a minute each: tools/fuzz.sh 60).
# What a target finds stays in build-fuzz/findings/<target>; its corpus grows in build-fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?seconds a target}
passed=0
failed=0
while read -r target; do
  corpus=build-fuzz/corpus/$target
  findings=build-fuzz/findings/$target
  mkdir -p "$corpus" "$findings"
  seeds=()
  if [ -d "tests/fuzz/$target" ]; then seeds=("tests/fuzz/$target"); fi
  if build-fuzz/"$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=0 \
      -artifact_prefix="$findings/" "$corpus" ${seeds[@]+"${seeds[@]}"} >"$findings/log" 2>&1; then
    passed=$((passed + 1))
    echo "fuzz $target: $(grep -c . "$findings/log" >/dev/null; tail -1 "$findings/log")"
  else
    failed=$((failed + 1))
    tail -40 "$findings/log"
    echo "fuzz $target: FAILED, see $findings"
  fi
done <build-fuzz/fuzzers.txt
echo "fuzz targets: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
