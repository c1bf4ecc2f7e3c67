"""Accuracy, majority class and calibration per skill, with each term of the head zeroed in turn.

evaluate.py CHECKPOINT [QUESTIONS PER SKILL] [JSON OUT]: held-out records, float32 on the BF16
weights.
"""

import collections
import json
import random
import sys

import numpy as np
import torch

import checkpoint
import mixture
from losses import batch_of, encode_sample
from record import options_of
from wording import HELD_OUT

FLOOR, FLOOR_ABOVE_MAJORITY = 0.80, 0.15


def samples(split, counts, seed):
    """counts: kind of record -> how many."""
    mixture.set_ease(0.0)
    out = []
    for i, (kind, count) in enumerate(counts.items()):
        rng, np_rng = random.Random(seed + i), np.random.default_rng(seed + i)
        out += [mixture.make(kind, rng, np_rng, split) for _ in range(count)]
    return out


def answer_class(sample, name):
    """What the majority class is counted over: the answer as it is named, and of how many levels a
    score has."""
    question = sample.questions[name]
    option = options_of(question)[sample.answers[name]][0]
    return (len(question["criteria"]), option) if question["type"] == "score" else option


def run(model, encoder, chosen, terms=((1.0, 1.0), (0.0, 1.0), (1.0, 0.0)), batch=24):
    """Rows (skill, class, correct index, [probabilities of each term setting])."""
    records = sorted((encode_sample(encoder, s) for s in chosen), key=lambda e: len(e["ids"]))
    rows = []
    with torch.no_grad():
        for i in range(0, len(records), batch):
            part = records[i : i + batch]
            b = batch_of(part)
            hidden, _ = model.hidden(b)
            results = [torch.softmax(model.head(hidden, b, model.lm_head.weight, *t), -1) for t in terms]
            for j, e in enumerate(part):
                sample = e["sample"]
                for q, name in enumerate(sample.questions):
                    k = int(b["option_mask"][j, q].sum())
                    rows.append((mixture.SKILL_OF[sample.skills[name]], answer_class(sample, name),
                                 e["answers"][q], [r[j, q, :k].tolist() for r in results]))
    return rows


def calibration_error(confidences, hits, bins=10):
    """Expected calibration error over equal bins of the largest probability."""
    table = collections.defaultdict(list)
    for c, hit in zip(confidences, hits):
        table[min(bins - 1, int(c * bins))].append((c, hit))
    return sum(abs(sum(c for c, _ in v) - sum(h for _, h in v)) for v in table.values()) / len(hits)


def summary(rows):
    """skill -> n, accuracy, majority, ece, and accuracy without the prior and the joint term."""
    by_skill = collections.defaultdict(list)
    for row in rows:
        by_skill[row[0]].append(row)
        by_skill["all"].append(row)
    out = {}
    for skill, group in sorted(by_skill.items()):
        hit = lambda t: [int(np.argmax(p[t]) == y) for _, _, y, p in group]
        confidence = [max(p[0]) for _, _, _, p in group]
        classes = collections.Counter(c for _, c, _, _ in group)
        # Where the names of options vary, guessing one of those offered beats any constant answer.
        majority = classes.most_common(1)[0][1] / len(group)
        guess = float(np.mean([1 / len(p[0]) for _, _, _, p in group]))
        out[skill] = dict(n=len(group), accuracy=float(np.mean(hit(0))), majority=max(majority, guess),
                          ece=calibration_error(confidence, hit(0)))
        if len(group[0][3]) == 3:
            out[skill].update(no_prior=float(np.mean(hit(1))), no_joint=float(np.mean(hit(2))))
    return out


def markdown(figures):
    """The table of README.md, skills that pass the floor first."""
    cell = lambda x: ("%.3f" % x).lstrip("0") if x < 1 else "1.00"
    lines = ["| skill | n | accuracy | majority | ECE | prior zeroed | joint term zeroed |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for skill, f in sorted(figures.items(), key=lambda x: (x[0] == "all", not passes(x[1]))):
        name = skill if passes(f) or skill == "all" else "*%s*" % skill
        lines.append("| %s | %d | %s |" % (name, f["n"], " | ".join(
            cell(f[k]) for k in ("accuracy", "majority", "ece", "no_prior", "no_joint"))))
    return "\n".join(lines)


def passes(figures):
    return (figures["accuracy"] >= FLOOR
            and figures["accuracy"] >= figures["majority"] + FLOOR_ABOVE_MAJORITY)


def show(figures):
    lines = ["%-18s %6s %8s %8s %6s %9s %9s" % ("skill", "n", "accuracy", "majority", "ece", "no prior", "no joint")]
    for skill, f in figures.items():
        lines.append("%-18s %6d %8.3f %8.3f %6.3f %9.3f %9.3f %s" % (
            skill, f["n"], f["accuracy"], f["majority"], f["ece"], f.get("no_prior", float("nan")),
            f.get("no_joint", float("nan")), "" if passes(f) else "below the floor"))
    return "\n".join(lines)


def full_set(split, per_skill, seed=90001):
    """Records until every skill has `per_skill` questions; the first ones of each are kept."""
    mixture.set_ease(0.0)
    have, chosen = collections.Counter(), []
    skills_of = {"support": {"routing", "refund", "cancellation", "thanks", "urgency", "urgent_yes_no", "sentiment", "mention"},
                 "language": {"language", "language_yes_no"},
                 "facts": {"json_above", "json_below", "json_equals", "json_value"},
                 "picture": {"colour", "dominant_colour", "shape", "count", "position", "picture_yes_no", "two_pictures"},
                 "clip": {"motion", "colour_order", "appearance"}}
    for i, (kind, wanted) in enumerate(skills_of.items()):
        rng, np_rng = random.Random(seed + i), np.random.default_rng(seed + i)
        while any(have[s] < per_skill for s in wanted):
            sample = mixture.make(kind, rng, np_rng, split)
            skills = [mixture.SKILL_OF[s] for s in sample.skills.values()]
            if all(have[s] >= 1.5 * per_skill for s in skills):
                continue  # Enough of these.
            chosen.append(sample)
            have.update(skills)
    return chosen


def main(path, per_skill=500, out=None):
    model, encoder = checkpoint.load(path)
    figures = summary(run(model, encoder, full_set(HELD_OUT, int(per_skill))))
    print(show(figures))
    if out:
        with open(out, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
