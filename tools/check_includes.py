#!/usr/bin/env python3
"""Fails when a folder includes one of its own rank or a higher one (docs/architecture.md), or when
a third-party header leaves the folder that may use it. Prints each offending line."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "architecture.md"
# Third-party headers and the folders that may include them.
ALLOWED = {
    r"^openssl/": {"base", "http"},
    r"^(oneapi/)?tbb/": {"base"},
    r"^hwy/": {"kernels", "quant"},
    r"^pcre2": {"text"},
    r"^utf8proc": {"text"},
    r"^CLI/": {"cli"},
    r"^spdlog/": {"server", "cli"},
    r"^boost/": {"http"},
    r"^zstd": {"http", "server"},  # server: its tests
    r"^(png|jerror|jpeglib|gif_lib|webp/|libav|libsw|seccomp|sandbox)": {"media"},
    r"^(nlohmann|rapidjson)/": set(),
}


def ranks():
    rows = re.findall(r"^\| (\d+) \| `(\w+)/` \|", TABLE.read_text(), re.M)
    return {folder: int(rank) for rank, folder in rows}


def offences():
    rank = ranks()
    for path in sorted((ROOT / "clefkit").rglob("*")):
        if path.suffix not in {".h", ".cc", ".mm", ".inc"}:
            continue
        folder = path.relative_to(ROOT / "clefkit").parts[0]
        if folder not in rank:
            yield f"{path.relative_to(ROOT)}: the folder has no row in docs/architecture.md"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            where = f"{path.relative_to(ROOT)}:{number}"
            own = re.match(r'\s*#\s*include\s+"clefkit/(\w+)/', line)
            if own and own[1] != folder and rank.get(own[1], 99) >= rank[folder]:
                yield f"{where}: {folder}/ (rank {rank[folder]}) includes {own[1]}/ (rank {rank.get(own[1])})"
            other = re.match(r"\s*#\s*include\s+[<\"]([^>\"]+)[>\"]", line)
            for pattern, folders in ALLOWED.items():
                if other and re.match(pattern, other[1]) and folder not in folders:
                    yield f"{where}: {other[1]} belongs to {', '.join(sorted(folders)) or 'no folder'}"


found = list(offences())
print("\n".join(found) if found else "include directions hold")
sys.exit(1 if found else 0)
