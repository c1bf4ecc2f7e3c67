#!/usr/bin/env python3
"""Reads weight files that mil_test wrote with Apple's own reader, and compares them with files that
Apple's own writer makes of the same values. Needs the package `coremltools` (9.0 was used).

  blob_coremltools_test.py MIL_TEST      the path of the test program, which is asked for the files"""
import logging
import os
import pathlib
import subprocess
import sys
import tempfile

logging.disable(logging.WARNING)  # The predicting half of coremltools is absent outside macOS.
import numpy
from coremltools.libmilstoragepython import _BlobStorageReader, _BlobStorageWriter

HALVES = [0x3C00 + i for i in range(64)]
PALETTES = numpy.array([k / 64 for k in range(64)], numpy.float16)
# file name -> (kind, offset of the record, values). float16 as bit patterns, as coremltools takes them.
FILES = {
    "four_types.bin": [
        ("uint6", 64, [1, 2, 3, 4, 63, 0, 32, 31, 5]),
        ("fp16", 192, HALVES),
        ("uint3", 384, [1, 2, 3, 4, 5, 6, 7, 0, 1]),
        ("uint1", 512, [1, 0, 0, 0, 1, 1, 0, 1, 1, 1]),
    ],
    "palettized_weight.bin": [
        ("uint6", 64, [i % 64 for i in range(128)]),
        ("fp16", 256, [*PALETTES.view(numpy.uint16).tolist(), *(-PALETTES).view(numpy.uint16).tolist()]),
    ],
}


def as_array(kind, values):
    return numpy.array(values, numpy.uint16 if kind == "fp16" else numpy.uint8)


def differences(path, blobs, scratch):
    reader = _BlobStorageReader(str(path))
    for kind, offset, values in blobs:
        read = numpy.asarray(getattr(reader, f"read_{kind}_data")(offset))
        if read.tolist() != values:
            yield f"{path.name}: {kind} at {offset}: read {read.tolist()}, expected {values}"
    by_apple = scratch / "by_apple.bin"
    by_apple.unlink(missing_ok=True)
    writer = _BlobStorageWriter(str(by_apple))
    for kind, offset, values in blobs:
        written_at = getattr(writer, f"write_{kind}_data")(as_array(kind, values))
        if written_at != offset:
            yield f"{path.name}: {kind} at {offset}, Apple's writer puts it at {written_at}"
    del writer  # Closes the file.
    if by_apple.read_bytes() != path.read_bytes():
        yield f"{path.name}: the bytes differ from those of Apple's writer"


def main():
    found = []
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        subprocess.run([sys.argv[1], "--gtest_filter=WeightBlobWriter.LeavesFilesForApplesReader"],
                       env={**os.environ, "CLEFKIT_BLOB_DIRECTORY": name}, check=True,
                       stdout=subprocess.DEVNULL)
        for file, blobs in FILES.items():
            found += differences(directory / file, blobs, directory)
    print("\n".join(found) if found else f"{len(FILES)} weight files agree with Apple's reader and writer")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
