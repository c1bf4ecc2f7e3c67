"""Requests to tensors: the record encoder (model.md 6), positions (3), patches (4, 5), batches.

A request here is the CLI's (`state`, `questions`, `images`, `videos`), but media are arrays:
pictures [h, w, 3] uint8, clips (frames [m, h, w, 3] uint8, times in seconds).
"""

import json

import numpy as np

from config import BLOCK, DEFAULT_FALSE, DEFAULT_TRUE, PATCH, SYSTEM, TYPES


def render(value):
    """A string as it is, anything else as canonical JSON (6.1)."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def options_of(question):
    """(id, description) in encoding order; a missing description is None (6.2)."""
    criteria = question.get("criteria")
    if question["type"] == "noul":
        given = criteria or {}
        return [("true", given.get("true", DEFAULT_TRUE)), ("false", given.get("false", DEFAULT_FALSE))]
    if question["type"] == "choice":
        return sorted(criteria.items())
    return [(str(i), text) for i, text in enumerate(criteria)]


def option_text(name, description):
    return render({"option_id": name} if description is None
                  else {"option_id": name, "description": description})


def patches(pair):
    """[2, h, w, 3] uint8 -> rows in 2x2 block order, columns channel, frame, y, x."""
    _, h, w, _ = pair.shape
    x = pair.reshape(2, h // BLOCK, 2, PATCH, w // BLOCK, 2, PATCH, 3)
    x = x.transpose(1, 4, 2, 5, 7, 0, 3, 6).reshape(h * w // PATCH**2, -1)
    return (x.astype(np.float32) - 127.5) / 127.5


def clip_pairs(frames, times):
    """Frame pairs and the time that the prompt prints for each."""
    if len(frames) % 2:
        frames, times = np.concatenate([frames, frames[-1:]]), [*times, times[-1]]
    return [(frames[k : k + 2], (times[k] + times[k + 1]) / 2) for k in range(0, len(frames), 2)]


def encode(tokenizer, request, random=None, noise=0.0):
    """Token ids, spans, positions and patches of one request. `noise` splits words of the user's
    texts at random (the tokenizer's way of augmenting)."""
    ids, segments, grids, slots = [], [], [], []
    add = lambda text, share=0.0: ids.extend(tokenizer(text, random, share))
    start, end, image, video = (tokenizer.added["<|%s|>" % name] for name in
                                ("vision_start", "vision_end", "image_pad", "video_pad"))

    def place(pair, pad):
        _, h, w, _ = pair.shape
        ids.extend([start] + [pad] * (h * w // BLOCK**2) + [end])
        grids.append((h // PATCH, w // PATCH))
        segments.append(patches(pair))

    add("<|im_start|>system\n" + SYSTEM + "<|im_end|>\n<|im_start|>user\nSTATE:\n")
    media_begin = len(ids)
    for picture in request.get("images", []):
        place(np.stack([picture, picture]), image)
    for frames, times in request.get("videos", []):
        ids.append(start)
        for pair, time in clip_pairs(frames, times):
            add("<%.1f seconds>" % time)
            place(pair, video)
        ids.append(end)
    media_end = len(ids)
    if segments:
        add("\n")
    state_begin = len(ids)
    add(render(request["state"]), noise)
    state_end = len(ids)
    add("\n\nSCHEMA FIELDS:\n")
    question_spans, option_spans = [], []
    for n, (name, question) in enumerate(request["questions"].items(), 1):
        add("\nFIELD %d\nID: %s\nTYPE: %s\nINSTRUCTION: " % (n, name, question["type"]))
        begin = len(ids)
        instructions = question.get("instructions")
        add(name if instructions in (None, "") else render(instructions), noise)
        question_spans.append((begin, len(ids)))
        add("\nALLOWED OPTIONS:\n")
        spans = []
        for m, option in enumerate(options_of(question), 1):
            add("OPTION %d: " % m)
            begin = len(ids)
            add(option_text(*option), noise)
            spans.append((begin, len(ids)))
            add("\n")
        option_spans.append(spans)
        add("END FIELD\n")
    add("\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nJOINT SCHEMA DECISIONS:")

    positions = np.zeros((3, len(ids)), np.int64)
    count, j, grid = 0, 0, iter(grids)
    while j < len(ids):
        if media_begin <= j < media_end and ids[j] in (image, video):
            gh, gw = next(grid)
            n = gh * gw // 4
            positions[0, j : j + n] = count
            positions[1, j : j + n] = count + np.arange(n) // (gw // 2)
            positions[2, j : j + n] = count + np.arange(n) % (gw // 2)
            slots += range(j, j + n)
            count += max(gh, gw) // 2
            j += n
        else:
            positions[:, j] = count
            count += 1
            j += 1
    return dict(ids=ids, positions=positions, slots=slots, state=(state_begin, state_end),
                segments=[(x, gh, gw) for x, (gh, gw) in zip(segments, grids)],
                question_spans=question_spans, option_spans=option_spans,
                types=[TYPES.index(q["type"]) for q in request["questions"].values()])


def collate(records):
    """One batch, padded on the right. Spans are rows of averaging weights."""
    import torch  # Here alone, so that the generators and their proof need none.

    size = len(records)
    n = max(len(e["ids"]) for e in records)
    questions = max(len(e["question_spans"]) for e in records)
    options = max(len(o) for e in records for o in e["option_spans"])
    b = dict(ids=torch.zeros(size, n, dtype=torch.long),
             positions=torch.zeros(size, 3, n, dtype=torch.long),
             lengths=torch.tensor([len(e["ids"]) for e in records]),
             question_span=torch.zeros(size, questions, n),
             option_span=torch.zeros(size, questions, options, n),
             option_mask=torch.zeros(size, questions, options, dtype=torch.bool),
             question_mask=torch.zeros(size, questions, dtype=torch.bool),
             types=torch.zeros(size, questions, dtype=torch.long))
    slots, segments = [], []
    for i, e in enumerate(records):
        m = len(e["ids"])
        b["ids"][i, :m] = torch.tensor(e["ids"])
        b["positions"][i, :, :m] = torch.from_numpy(e["positions"])
        slots += [i * n + s for s in e["slots"]]
        segments += [(torch.from_numpy(x), gh, gw) for x, gh, gw in e["segments"]]
        for j, (begin, end) in enumerate(e["question_spans"]):
            b["question_span"][i, j, begin:end] = 1 / (end - begin)
            b["question_mask"][i, j] = True
            b["types"][i, j] = e["types"][j]
            for k, (begin, end) in enumerate(e["option_spans"][j]):
                b["option_span"][i, j, k, begin:end] = 1 / (end - begin)
                b["option_mask"][i, j, k] = True
    b["option_mask"][:, :, 0] |= ~b["question_mask"]  # A softmax over nothing would be NaN.
    b.update(slots=torch.tensor(slots, dtype=torch.long), segments=segments)
    return b
