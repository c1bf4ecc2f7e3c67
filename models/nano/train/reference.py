"""Records PyTorch's answers to a set: reference.py CHECKPOINT SET.jsonl OUT.jsonl.

Float32 arithmetic on the checkpoint's BF16 weights. `clefkit eval SET --against OUT` compares any
model with them; every line of the set needs a name.
"""

import os
import sys

import torch

import checkpoint
import request_files


def main(path, set_path, out):
    torch.set_num_threads(1)
    model, encoder = checkpoint.load(path)
    lines = []
    for line in request_files.read_set(set_path):
        request = request_files.load(line, os.path.dirname(set_path))
        found = request_files.probabilities(model, encoder, request)
        lines.append({"name": line["name"], "answers": request_files.answers(line, found)})
    request_files.write_lines(out, lines)
    print("%d requests" % len(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
