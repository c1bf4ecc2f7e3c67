"""Asks `clefkit` and PyTorch the same: parity.py CHECKPOINT CLEFKIT [REQUESTS [FOLDER]].

Writes generated requests of every kind and split into FOLDER, with their media, answers each with
PyTorch (float32 on the checkpoint's BF16 weights) and with the command line (`exact`), and prints
the largest difference of a probability. Exit code 1 above 1e-4.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch

import checkpoint
import mixture
import request_files

LIMIT = 1e-4


def main(path, clefkit, count=200, folder=None):
    torch.set_num_threads(1)
    model, encoder = checkpoint.load(path)
    folder = folder or tempfile.mkdtemp(prefix="clef-nano-parity-")
    os.makedirs(folder, exist_ok=True)
    rng, np_rng, worst, questions = random.Random(20), np.random.default_rng(20), 0.0, 0
    for i in range(int(count)):
        kind, split = mixture.KINDS[i % len(mixture.KINDS)], ("train", "held")[i // len(mixture.KINDS) % 2]
        request = request_files.to_request(mixture.make(kind, rng, np_rng, split), folder, "%03d" % i)
        name = os.path.join(folder, "%03d.json" % i)
        with open(name, "w", encoding="utf-8") as file:
            json.dump(request, file, ensure_ascii=False)
        found = request_files.probabilities(model, encoder, request_files.load(request, folder))
        run = subprocess.run([clefkit, "ask", "-m", path, "--request", name, "--json", "--quiet",
                              "--precision", "exact", "--backend", "cpu", "--threads", "1"],
                             capture_output=True, text=True)
        if run.returncode:
            raise SystemExit("%s: %s" % (name, run.stderr or run.stdout))
        answers = json.loads(run.stdout)["answers"]
        for q, expected in found.items():
            got = request_files.from_answer(request["questions"][q], answers[q])
            difference = max(abs(a - b) for a, b in zip(got, expected))
            questions += 1
            if difference > worst:
                worst = difference
                print("request %d, %s: %.2e" % (i, q, difference), flush=True)
    print("%d requests, %d questions: largest difference of a probability %.2e" % (int(count), questions, worst))
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
