"""Lines of `clefkit eval`'s sets: request bodies with what is expected beside them."""

import json
import os

import torch

import record
from media_files import load_clip, load_picture, save_clip, save_picture


def expected_of(sample):
    """Answers as people write them: true or false, an option's id, a score's level."""
    answers = {}
    for name, question in sample.questions.items():
        index = sample.answers[name]
        if question["type"] == "noul":
            answers[name] = index == 0
        elif question["type"] == "choice":
            answers[name] = record.options_of(question)[index][0]
        else:
            answers[name] = index
    return answers


def to_request(sample, folder, prefix, place=""):
    """The request as JSON; writes its media into `folder` / `place`."""
    request = {"model": "clef-nano", "state": sample.state, "questions": sample.questions}
    media = [("images", "png", save_picture, p) for p in sample.pictures]
    media += [("videos", "mkv", lambda path, c: save_clip(path, c[0], round(1 / c[1][1])), c)
              for c in sample.clips]
    if media:
        os.makedirs(os.path.join(folder, place), exist_ok=True)
    for i, (kind, ending, write, item) in enumerate(media):
        name = os.path.join(place, "%s%s.%s" % (prefix, "-%d" % (i + 1) if len(media) > 1 else "", ending))
        write(os.path.join(folder, name), item)
        request.setdefault(kind, []).append("file:" + name)
    return request


def load(line, folder):
    """A line as record.encode takes it, its media read from `folder`."""
    place = lambda name: os.path.join(folder, name.removeprefix("file:"))
    return dict(state=line["state"], questions=line["questions"],
                images=[load_picture(place(x)) for x in line.get("images", [])],
                videos=[load_clip(place(x)) for x in line.get("videos", [])])


def read_set(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def write_lines(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def probabilities(model, encoder, request):
    """Per question, one probability an option in encoding order."""
    with torch.no_grad():
        logits = model(record.collate([record.encode(encoder, request)]))[0]
    out = {}
    for i, (name, question) in enumerate(request["questions"].items()):
        k = len(record.options_of(question))
        out[name] = torch.softmax(logits[i, :k].double(), -1).tolist()
    return out


def answers(request, found):
    """Probabilities as the answers of `ask --json` (without a confidence)."""
    out = {}
    for name, question in request["questions"].items():
        p = dict(zip([o for o, _ in record.options_of(question)], found[name]))
        if question["type"] == "noul":
            out[name] = {"type": "noul", "noul": p["true"]}
            continue
        if question["type"] == "choice":
            p = {o: p[o] for o in question["criteria"]}  # In the request's order.
            out[name] = {"type": "choice", "choice": max(p, key=p.get)}
        else:
            out[name] = {"type": "score", "score": sum(i * x for i, x in enumerate(p.values())),
                         "legend": {str(i): c for i, c in enumerate(question["criteria"])}}
        out[name] |= {"confidence": max(p.values()), "probabilities": p}
    return out


def from_answer(question, answer):
    """An answer of `ask --json` as probabilities in encoding order."""
    if question["type"] == "noul":
        return [answer["noul"], 1 - answer["noul"]]
    return [answer["probabilities"][name] for name, _ in record.options_of(question)]
