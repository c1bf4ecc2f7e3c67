"""Writes held-out sets as JSONL, one per skill: sets.py FOLDER [LINES PER SKILL] [SKILL...].

The lines keep only the questions of their skill; media stand in the folder's `media`.
`clefkit eval` reads the files.
"""

import os
import random
import sys

import numpy as np

import mixture
from request_files import expected_of, to_request, write_lines
from wording import HELD_OUT

KIND_OF = {"support": ("routing", "refund", "cancellation", "thanks", "urgency", "urgent_yes_no", "sentiment", "mention"),
           "language": ("language", "language_yes_no"),
           "facts": ("json_above", "json_below", "json_equals", "json_value"),
           "picture": ("colour", "dominant_colour", "shape", "count", "position", "picture_yes_no", "two_pictures"),
           "clip": ("motion", "colour_order", "appearance")}
_SHORTER = 3  # Pictures and clips are larger than lines of text: a third as many.


def write(folder, kind, skill, lines, seed):
    mixture.set_ease(0.0)
    rng, np_rng = random.Random("%d %s" % (seed, skill)), np.random.default_rng(seed)
    out = []
    while len(out) < lines:
        sample = mixture.make(kind, rng, np_rng, HELD_OUT)
        sample.questions = {n: q for n, q in sample.questions.items()
                            if mixture.SKILL_OF[sample.skills[n]] == skill}
        if not sample.questions:
            continue
        name = "%s-%03d" % (skill, len(out))
        line = {"name": name} | to_request(sample, folder, name, "media")
        line["expected"] = expected_of(sample)
        line["skills"] = {n: skill for n in sample.questions}
        out.append(line)
    write_lines(os.path.join(folder, skill + ".jsonl"), out)


def main(folder, lines=24, *skills):
    os.makedirs(folder, exist_ok=True)
    for kind, names in KIND_OF.items():
        for skill in names:
            if not skills or skill in skills:
                count = int(lines) if kind not in ("picture", "clip") else max(1, int(lines) // _SHORTER)
                write(folder, kind, skill, count, 4242)


if __name__ == "__main__":
    main(*sys.argv[1:])
