"""Proves that held-out wordings, values, criteria lists, sizes and grounds never occur in training.

First every list of wordings is expanded in full and its two parts compared; then records of both
splits are made and what they show is compared. Prints a line per check; exit code 1 on an overlap.
"""

import random
import re
import sys

import numpy as np

import clips
import mixture
import pictures
import questions as Q
import words as W
from record import options_of
from wording import HELD, HELD_OUT, TRAIN, expand, part, texts_of

failures = []


def compare(name, train, held, shared=()):
    overlap = (set(train) & set(held)) - set(shared)
    print("%-42s %7d training %6d held out: %s" % (name, len(set(train)), len(set(held)),
                                                  "disjoint" if not overlap else "OVERLAP"))
    if overlap:
        failures.append("%s: %s" % (name, sorted(map(str, overlap))[:5]))
    if not set(held):
        failures.append("%s: nothing held out" % name)


def compare_list(name, entries, shared=("",)):
    compare(name, texts_of(entries, TRAIN), texts_of(entries, HELD_OUT), shared)


def compare_lists():
    for slot, values in W.SLOTS.items():
        compare_list("slot %s" % slot, values)
    for topic, (names, descriptions, sentences) in W.TOPICS.items():
        compare_list("team names of %s" % topic, names)
        compare_list("descriptions of %s" % topic, descriptions)
        compare_list("sentences of %s" % topic, sentences)
    for name, lists in (("refund", W.REFUND), ("cancel", W.CANCEL)):
        for side, entries in zip(("asked", "denied"), lists):
            compare_list("%s, %s" % (name, side), entries)
    compare_list("thanks", W.THANKS)
    for name, levels in (("urgency", W.URGENCY), ("sentiment", W.SENTIMENT)):
        for i, entries in enumerate(levels):
            compare_list("%s %d" % (name, i), entries)
    compare_list("greetings", W.GREETINGS)
    compare_list("farewells", W.FAREWELLS)
    compare_list("frames", W.FRAMES, ("{x}",))  # The bare sentence is no frame.
    for code, lists in W.LANGUAGES.items():
        for i, entries in enumerate(lists):
            compare_list("language %s, part %d" % (code, i), entries)
    compare_list("language descriptions", W.LANGUAGE_DESCRIPTIONS)
    compare_list("number fields", W.NUMBER_FIELDS)
    for field, values in W.WORD_FIELDS.items():
        compare_list("values of %s" % field, values)
    compare_list("object names", W.OBJECT_NAMES)
    for skill, entries in Q.ASK.items():
        compare_list("questions of %s" % skill, entries)
    for skill, entries in Q.YES_NO.items():
        compare_list("criteria of %s" % skill, entries)
    for name, entries in Q.LEVELS.items():
        compare_list("levels of %s" % name, entries)
    for name, entries in list(pictures.POSITION_WORDS.items()) + list(clips.WORDS.items()):
        compare_list("descriptions of %s" % name, entries)
    for name, entries in (("grounds", pictures.GROUNDS), ("picture sizes", pictures.SIZES),
                          ("clip sizes", clips.SIZES), ("radii", pictures.RADII)):
        compare(name, part(entries, TRAIN), part(entries, HELD_OUT))
    for low, high in part(pictures.RADII, HELD_OUT):
        for a, b in part(pictures.RADII, TRAIN):
            if a < high and low < b:
                failures.append("radii %s and %s overlap" % ((a, b), (low, high)))


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from strings(v)


def seen(split, count):
    """What `count` records of each kind show."""
    out = {k: set() for k in ("message sentences", "json words", "json numbers", "instructions",
                              "criteria lists", "message numbers", "picture sizes", "clip sizes")}
    for kind in mixture.KINDS:
        rng, np_rng = random.Random(kind + split), np.random.default_rng(len(kind + split))
        for _ in range(count if kind in ("support", "language", "facts") else count // 8):
            sample = mixture.make(kind, rng, np_rng, split)
            if kind in ("support", "language"):
                for text in strings(sample.state):
                    out["message sentences"].update(s for s in re.split(r"(?<=[.?]) ", text) if " " in s)
                    out["message numbers"].update(re.findall(r"\d+", text))
            if kind == "facts":
                state = sample.state
                if len(state) == 1 and isinstance(next(iter(state.values())), dict):
                    state = next(iter(state.values()))
                out["json words"].update(v for v in state.values() if isinstance(v, str))
                out["json numbers"].update(v for v in state.values() if isinstance(v, int))
            for question in sample.questions.values():
                text = question.get("instructions")
                if text and " " in text:
                    out["instructions"].add(text)
                options = options_of(question)
                texts = [d for _, d in options if d and not d.startswith("The proposition is")]
                # Levels and descriptions; lists of bare names are the subject itself (colours).
                if texts and kind in ("support", "language"):
                    out["criteria lists"].add(tuple(texts))
            out["picture sizes"].update(p.shape[:2] for p in sample.pictures)
            out["clip sizes"].update(c[0].shape[1:3] for c in sample.clips)
    return out


def main(count=20000):
    compare_lists()
    mixture.set_ease(0.3)
    train, held = seen(TRAIN, int(count)), seen(HELD_OUT, int(count) // 4)
    for name in train:
        compare("records: " + name, train[name], held[name])
    print("%d failures" % len(failures))
    for failure in failures:
        print("  " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
