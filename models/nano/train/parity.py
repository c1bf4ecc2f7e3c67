"""Asks `clefkit` and PyTorch the same: parity.py CHECKPOINT CLEFKIT [REQUESTS [FOLDER]].

Writes generated requests of every kind with their media and PyTorch's probabilities (float32 on
the checkpoint's BF16 weights) into FOLDER, asks the command line about each and prints the largest
difference. The folder's reference.jsonl is the dump of reference answers. Exit code 1 above 1e-4.
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
import record
from request_files import expected_of, to_request


def probabilities(model, encoder, sample):
    """Per question, one probability an option in encoding order."""
    batch = record.collate([record.encode(encoder, sample.request())])
    with torch.no_grad():
        logits = model(batch)[0]
    out = {}
    for i, (name, question) in enumerate(sample.questions.items()):
        k = len(record.options_of(question))
        out[name] = torch.softmax(logits[i, :k], -1).tolist()
    return out


def answered(question, answer):
    """An answer of the command line as probabilities in encoding order."""
    if question["type"] == "noul":
        return [answer["noul"], 1 - answer["noul"]]
    return [answer["probabilities"][name] for name, _ in record.options_of(question)]


def dump(folder, model, encoder, count, seed):
    """Writes `count` requests with media and reference.jsonl; returns the lines."""
    os.makedirs(folder, exist_ok=True)
    rng, np_rng, lines = random.Random(seed), np.random.default_rng(seed), []
    for i in range(count):
        sample = mixture.make(mixture.KINDS[i % len(mixture.KINDS)], rng, np_rng,
                              ("train", "held")[i // len(mixture.KINDS) % 2])
        lines.append({"request": to_request(sample, folder, "%03d" % i),
                      "expected": expected_of(sample),
                      "probabilities": probabilities(model, encoder, sample)})
    with open(os.path.join(folder, "reference.jsonl"), "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return lines


def main(path, clefkit, count=200, folder=None):
    torch.set_num_threads(1)
    model, encoder = checkpoint.load(path)
    folder = folder or tempfile.mkdtemp(prefix="clef-nano-parity-")
    worst, questions = 0.0, 0
    for i, line in enumerate(dump(folder, model, encoder, int(count), 20)):
        name = os.path.join(folder, "%03d.json" % i)
        with open(name, "w", encoding="utf-8") as file:
            json.dump(line["request"], file, ensure_ascii=False)
        run = subprocess.run([clefkit, "ask", "-m", path, "--request", name, "--json", "--quiet",
                              "--precision", "exact", "--backend", "cpu", "--threads", "1"],
                             capture_output=True, text=True)
        if run.returncode:
            raise SystemExit("%s: %s" % (name, run.stderr or run.stdout))
        answers = json.loads(run.stdout)["answers"]
        for q, expected in line["probabilities"].items():
            got = answered(line["request"]["questions"][q], answers[q])
            difference = max(abs(a - b) for a, b in zip(got, expected))
            questions += 1
            if difference > worst:
                worst = difference
                print("request %d, %s: %.2e" % (i, q, difference), flush=True)
    print("%s requests, %d questions: largest difference of a probability %.2e" % (count, questions, worst))
    return 0 if worst <= 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
