"""Wordings as small grammars: `(a|b)` chooses, `(a|)` may be left out, `{slot}` is filled later.

A list keeps what training uses before the marker HELD and what only held-out sets use after it.
"""

import functools
import itertools
import re

HELD = "|held|"
TRAIN, HELD_OUT = "train", "held"
_GROUP = re.compile(r"\(([^()]*\|[^()]*)\)")


def part(entries, split):
    """The entries of one split; a list without the marker serves both (it names what a skill is
    about, such as colours, and says so where it stands)."""
    if HELD not in entries:
        return entries
    i = entries.index(HELD)
    return entries[:i] if split == TRAIN else entries[i + 1 :]


@functools.lru_cache(maxsize=None)
def expand(grammar):
    """Every text of a grammar, in a fixed order."""
    pieces = _GROUP.split(grammar)  # Odd places hold the alternatives.
    choices = [p.split("|") if i % 2 else [p] for i, p in enumerate(pieces)]
    return tuple(tidy("".join(c)) for c in itertools.product(*choices))


def tidy(text):
    return re.sub(r" +", " ", text).strip().replace(" ,", ",").replace(" .", ".").replace(" ?", "?")


def pick(random, entries, split):
    """One text: a grammar of the split, then one of its texts."""
    return choose(random, random.choice(part(entries, split)))


def choose(random, grammar):
    """One text of a grammar, without expanding it all."""
    if "(" not in grammar:
        return grammar
    pieces = _GROUP.split(grammar)
    return tidy("".join(random.choice(p.split("|")) if i % 2 else p for i, p in enumerate(pieces)))


def texts_of(entries, split):
    """The set of all texts that a split's grammars give."""
    return {text for grammar in part(entries, split) for text in expand(grammar)}
