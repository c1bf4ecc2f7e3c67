"""Targets and losses of a training batch, the helpers' among them.

The answer loss alone leaves chance very late. Helpers that training drops towards its end: the
answer's first token at the question's end (through lm_head), linear probes on the state's last
token and on the question's last token, and probes on every token of a picture.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

import questions
from clips import DIRECTIONS, EVENTS
from pictures import COLOURS, POSITIONS, SHAPES
from record import collate, encode, options_of
from words import LANGUAGES, TOPICS

STATE_PROBES = dict(topic=len(TOPICS), refund=2, cancel=2, thanks=2, urgency=3, sentiment=5,
                    language=len(LANGUAGES), colour=len(COLOURS), dominant=len(COLOURS),
                    shape=len(SHAPES), count=4, position=len(POSITIONS), motion=len(DIRECTIONS),
                    first=len(COLOURS), last=len(COLOURS), event=len(EVENTS),
                    number_length=3, number_hundreds=10, number_tens=10, number_ones=10)
QUESTION_PROBES = {side + place: 3 if place == "length" else 10 for side in ("value_", "limit_")
                   for place in ("length", "hundreds", "tens", "ones")}
TOKEN_PROBES = dict(object=1, where=10, centres=3, colour=len(COLOURS), shape=len(SHAPES), motion=len(DIRECTIONS))
_KINDS = {name: i for i, name in enumerate(questions.ASK)}
_COVERED = 0.06  # Share of a token's pixels from which on it shows the shape.


class Probes(nn.Module):
    """The linear layers that only training has."""

    def __init__(self, c):
        super().__init__()
        layer = lambda n: nn.Linear(c["hidden"], n)
        self.state = nn.ModuleDict({k: layer(n) for k, n in STATE_PROBES.items()})
        self.question = nn.ModuleDict({k: layer(n) for k, n in QUESTION_PROBES.items()})
        self.token = nn.ModuleDict({k: layer(n) for k, n in TOKEN_PROBES.items()})
        self.norm = nn.LayerNorm(c["hidden"])
        # At a question's end: what is asked, and what the state says. With both there, the answer
        # is one step away; without them it takes very long until questions look at the state.
        self.kind = layer(len(questions.ASK))
        self.recalled = nn.ModuleDict({k: layer(n) for k, n in STATE_PROBES.items()})


def encode_sample(encoder, sample, random=None, noise=0.0):
    """record.encode with the targets beside it."""
    e = encode(encoder, sample.request(), random, noise)
    e["sample"] = sample
    e["answers"] = list(sample.answers.values())
    e["answer_tokens"] = []
    for name, question in sample.questions.items():
        option = options_of(question)[sample.answers[name]][0]
        e["answer_tokens"].append(encoder(option)[0])
    return e


def batch_of(records):
    """collate, and the answers [B, Q] with -100 where there is no question."""
    b = collate(records)
    b["answers"] = torch.full(b["types"].shape, -100)
    for i, e in enumerate(records):
        b["answers"][i, : len(e["answers"])] = torch.tensor(e["answers"])
    return b


def _where(h, w):
    """Which of 3 x 3 cells each of h x w tokens lies in."""
    y, x = ((torch.arange(k) * 2 + 1) * 3 // (2 * k) for k in (h, w))
    return (y[:, None] * 3 + x).reshape(-1)


def _probe_losses(layers, rows, targets):
    """targets: name -> ([row index], [label])."""
    return [F.cross_entropy(layers[k](rows[torch.tensor(i)]), torch.tensor(y))
            for k, (i, y) in targets.items()]


def helper_losses(model, probes, records, b, hidden, features):
    """(answer token, probes of text, probes of pictures), each a scalar (0 when empty)."""
    n, flat, zero = hidden.shape[1], hidden.reshape(-1, hidden.shape[-1]), hidden.new_zeros(())
    ends, tokens, kinds, state, question, recalled = [], [], [], {}, {}, {}

    def note(table, name, row, label):
        entry = table.setdefault(name, ([], []))
        entry[0].append(row)
        entry[1].append(label)

    for i, e in enumerate(records):
        for name, label in e["sample"].probes.items():
            note(state, name, i * n + e["state"][1] - 1, label)
        for (_, end), token, name in zip(e["question_spans"], e["answer_tokens"], e["sample"].questions):
            ends.append(i * n + end - 1)
            tokens.append(token)
            kinds.append(_KINDS[e["sample"].skills[name]])
            for probe, label in e["sample"].probes.items():
                note(recalled, probe, i * n + end - 1, label)
            for probe, label in e["sample"].question_probes.get(name, {}).items():
                note(question, probe, i * n + end - 1, label)
    answer = F.cross_entropy(model.lm_head(flat[torch.tensor(ends)]), torch.tensor(tokens))
    losses = [torch.stack(x).mean() for x in (
        _probe_losses(probes.state, flat, state), _probe_losses(probes.question, flat, question),
        _probe_losses(probes.recalled, flat, recalled)) if x]
    losses.append(0.5 * F.cross_entropy(probes.kind(flat[torch.tensor(ends)]), torch.tensor(kinds)))
    pictures = _token_losses(probes, records, features) if features is not None else []
    return answer, sum(losses, zero), torch.stack(pictures).mean() if pictures else zero


def _token_losses(probes, records, features):
    rows, cells, where, centres, start = [], [], [], [], 0
    labels = {k: [] for k in ("colour", "shape", "motion")}
    for e in records:
        for (_, gh, gw), probe in zip(e["segments"], e["sample"].vision_probes):
            count = gh * gw // 4
            if probe is not None:
                rows += range(start, start + count)
                cells.append(torch.from_numpy(probe["cells"].ravel()))
                where.append(_where(gh // 2, gw // 2))
                known = probe.get("centres")
                centres += [-100] * count if known is None else known.clip(max=2).ravel().tolist()
                for k, values in labels.items():
                    values += [probe.get(k, -100)] * count
            start += count
    if not rows:
        return []
    x, covered = probes.norm(features[torch.tensor(rows)]), torch.cat(cells) > _COVERED
    where = torch.where(covered, torch.cat(where), 9)
    out = [2 * F.binary_cross_entropy_with_logits(probes.token["object"](x)[:, 0], covered.float()),
           2 * F.cross_entropy(probes.token["where"](x), where)]
    if max(centres) >= 0:
        out.append(3 * F.cross_entropy(probes.token["centres"](x), torch.tensor(centres)))
    for k, values in labels.items():
        target = torch.where(covered, torch.tensor(values), -100)
        if (target >= 0).any():
            out.append(F.cross_entropy(probes.token[k](x), target))
    return out
