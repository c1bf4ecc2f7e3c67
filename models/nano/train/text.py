"""Text records: support messages, sentences of four languages, JSON objects."""

import words as W
from sample import Sample, number
from wording import TRAIN, choose, part, pick

EASY = {"share": 0.0}  # Share of short messages; training lowers it from its start on.


def _fill(random, text, split, extra=None):
    if "{" not in text:
        return text
    slots = {k: random.choice(part(v, split)) for k, v in W.SLOTS.items() if "{%s}" % k in text}
    slots["amt"], slots["num"] = number(random, split, 4, 999), number(random, split, 2, 999)
    slots.update(extra or {})
    return text.format(**slots)


def _sentence(text):
    asks = text.split(" ")[0].lower() in {"why", "how", "when", "where", "what", "can", "could", "do", "is",
                                          "which", "who", "to", "did", "does"} and "not" not in text.split(" ")[:2]
    return text[0].upper() + text[1:] + ("?" if asks else ".")


def _drop_words(random, text):
    """Training leaves out a word here and there, so that no single one is relied on."""
    kept = [w for w in text.split(" ") if random.random() > 0.12]
    return " ".join(kept) or text


def _topic_sentence(random, topic, split):
    product = random.choice(part(W.SLOTS["prod"], split))
    text = _fill(random, pick(random, W.TOPICS[topic][2], split), split, {"prod": product})
    mentioned = product if product in text else None
    if split == TRAIN and random.random() < 0.25:
        text = _drop_words(random, text)
    frame = pick(random, W.FRAMES, split)
    return frame.replace("{x}", text), mentioned


def _easy_message(random, split):
    """One or two sentences; each label is certain."""
    label = {"topic": None, "product": None, "refund": False, "cancel": False, "thanks": False,
             "urgency": None, "sentiment": None}
    texts = []
    for kind in random.sample(["topic", "topic", "refund", "cancel", "thanks", "urgency", "sentiment"],
                              random.choice([1, 1, 2])):
        if kind == "topic":
            if label["topic"]:
                continue
            label["topic"] = random.choice(list(W.TOPICS))
            text, label["product"] = _topic_sentence(random, label["topic"], split)
        elif kind in ("refund", "cancel"):
            label[kind] = random.random() < 0.75
            lists = W.REFUND if kind == "refund" else W.CANCEL
            text = _fill(random, pick(random, lists[0 if label[kind] else 1], split), split)
        elif kind == "thanks":
            label[kind] = True
            text = pick(random, W.THANKS, split)
        else:
            lists = W.URGENCY if kind == "urgency" else W.SENTIMENT
            label[kind] = random.randrange(len(lists))
            text = _fill(random, pick(random, lists[label[kind]], split), split)
        texts.append(text)
    return " ".join(map(_sentence, texts)), label


def _message(random, split):
    """One support message: every question draws on one sentence, the rest distracts."""
    if split == TRAIN and random.random() < EASY["share"]:
        return _easy_message(random, split)
    topic = random.choice(list(W.TOPICS))
    first, product = _topic_sentence(random, topic, split)
    label, texts = {"topic": topic, "product": product}, []
    for kind, lists in (("refund", W.REFUND), ("cancel", W.CANCEL)):
        x = random.random()
        label[kind] = x < 0.42
        if x < 0.6:
            texts.append(_fill(random, pick(random, lists[0 if x < 0.42 else 1], split), split))
    label["urgency"] = random.randrange(3) if random.random() < 0.6 else None
    if label["urgency"] is not None:
        texts.append(pick(random, W.URGENCY[label["urgency"]], split))
    label["sentiment"] = random.randrange(5)
    if label["sentiment"] != 2 or random.random() < 0.6:
        texts.append(_fill(random, pick(random, W.SENTIMENT[label["sentiment"]], split), split))
    label["thanks"] = random.random() < 0.5
    if label["thanks"]:
        texts.append(pick(random, W.THANKS, split))
    random.shuffle(texts)
    texts.insert(0 if random.random() < 0.7 else random.randint(0, len(texts)), first)
    hello, bye = (_fill(random, pick(random, x, split), split) for x in (W.GREETINGS, W.FAREWELLS))
    body = " ".join(map(_sentence, texts))
    if random.random() < 0.06:
        body = body.lower().replace(".", "")
    return (hello + ", " if hello else "") + body + (" " + bye if bye else ""), label


def _wrapped(random, body, split):
    x = random.random()
    if x < 0.7:
        return body
    state = {random.choice(["message", "text", "body", "mail"]): body}
    if x < 0.85:
        state["customer"] = random.choice(part(W.SLOTS["name"], split))
    if x > 0.9:
        state["id"] = number(random, split, 2, 999)
    return state


def _ask_topic(sample, topic):
    random, split = sample.random, sample.split
    chosen = [topic] + random.sample([t for t in W.TOPICS if t != topic], random.randint(1, 4))
    described, options = random.random() < 0.5, []
    for t in chosen:
        names, descriptions, _ = W.TOPICS[t]
        text = pick(random, descriptions, split) if described or random.random() < 0.1 else None
        options.append((pick(random, names, split), text))
    truth = options[0][0]
    random.shuffle(options)
    sample.ask_choice("route", options, truth)


def support(random, split):
    """A support message with two to four questions."""
    sample = Sample(random, split)
    body, label = _message(random, split)
    sample.state = _wrapped(random, body, split)
    for key, name in (("refund", "refund"), ("cancel", "cancel"), ("thanks", "thanks")):
        sample.probes[name] = int(label[key])
    if label["topic"]:
        sample.probes["topic"] = list(W.TOPICS).index(label["topic"])
    for key in ("urgency", "sentiment"):
        if label[key] is not None:
            sample.probes[key] = label[key]
    kinds = ["refund", "cancel", "thanks", "urgent"]
    kinds += [k for k, there in (("route", label["topic"]), ("urgency", label["urgency"] is not None),
                                 ("sentiment", label["sentiment"] is not None)) if there for _ in range(3)]
    if label["topic"] and random.random() < 0.4:
        kinds.append("mention")
    random.shuffle(kinds)
    for kind in list(dict.fromkeys(kinds))[: random.choice([1, 2, 3, 3, 4])]:
        if kind == "route":
            _ask_topic(sample, label["topic"])
        elif kind in ("refund", "cancel", "thanks"):
            sample.ask_yes_no(kind, label[kind])
        elif kind == "urgent":
            sample.ask_yes_no(kind, label["urgency"] == 2)
        elif kind == "urgency":
            sample.ask_score(kind, "urgency", label["urgency"])
        elif kind == "sentiment":
            if random.random() < 0.5:
                sample.ask_score(kind, "sentiment5", label["sentiment"])
            else:
                sample.ask_score(kind, "sentiment3", (label["sentiment"] > 1) + (label["sentiment"] > 2))
        else:
            truth = label["product"] is not None and random.random() < 0.6
            others = [p for p in part(W.SLOTS["prod"], split) if p != label["product"]]
            sample.ask_yes_no(kind, truth, f=label["product"] if truth else random.choice(others))
    return sample


def language(random, split):
    """One or two sentences; which of four languages?"""
    sample = Sample(random, split)
    truth = random.choice(list(W.LANGUAGES))
    lists = [part(x, split) for x in W.LANGUAGES[truth]]
    texts = []
    for _ in range(random.choice([1, 1, 1, 2])):
        words = [random.choice(x) for x in lists]
        words = words if random.random() < 0.7 else words[: random.choice([2, 3])]
        text = " ".join(words)
        texts.append(text[0].upper() + text[1:] + ".")
    sample.state = _wrapped(random, " ".join(texts), split)
    sample.probes["language"] = list(W.LANGUAGES).index(truth)
    style = random.choice([lambda k: k, lambda k: W.LANGUAGE_NAMES[k], lambda k: W.LANGUAGE_NAMES[k].lower()])
    chosen = [truth] + random.sample([x for x in W.LANGUAGES if x != truth], random.choice([1, 2, 3, 3]))
    random.shuffle(chosen)
    grammar = random.choice(part(W.LANGUAGE_DESCRIPTIONS, split)) if random.random() < 0.35 else None
    options = [(style(k), choose(random, grammar).format(L=W.LANGUAGE_NAMES[k]) if grammar else None)
               for k in chosen]
    sample.ask_choice("language", options, style(truth))
    if random.random() < 0.4:
        asked = truth if random.random() < 0.5 else random.choice([x for x in W.LANGUAGES if x != truth])
        sample.ask_yes_no("is_language", asked == truth, L=W.LANGUAGE_NAMES[asked])
    return sample


def _pseudo_word(random):
    """Training only: a value that no list has, so that matching must be learnt and not names."""
    return "".join(random.choice("bcdfglmnprstvz") + random.choice("aeiou")
                   + random.choice(["", "", "n", "r", "s", "l"]) for _ in range(random.choice([2, 2, 3])))


def _words_of_field(random, field, split):
    values = [v for v in part(W.WORD_FIELDS[field], split)]
    if split == TRAIN and random.random() < 0.35:
        values = [_pseudo_word(random) for _ in range(5)]
    return values


def _is_held_out(value):
    """Every seventh number of JSON objects and their limits occurs in held-out sets only."""
    return value % 7 == 3


def _json_number(random, split, low, high):
    while True:
        value = random.randint(low, high)
        if _is_held_out(value) == (split != TRAIN):
            return value


def _another_number(random, split, value):
    """A limit to compare with: near, of the same length, or anything."""
    while True:
        x = random.random()
        if x < 0.25:
            other = value + random.randint(-15, 15)
        elif x < 0.7:
            length = len(str(value))
            other = random.randint(10 ** (length - 1) if length > 1 else 0, 10**length - 1)
        else:
            other = random.choice([random.randint(0, 99), random.randint(0, 999)])
        if 0 <= other <= 999 and other != value and _is_held_out(other) == (split != TRAIN):
            return other


def _digits(prefix, value):
    text = "%03d" % value
    return {prefix + "length": len(str(value)) - 1, prefix + "hundreds": int(text[0]),
            prefix + "tens": int(text[1]), prefix + "ones": int(text[2])}


def _named(random, field):
    return '"%s"' % field if random.random() < 0.6 else field


def facts(random, split):
    """A JSON object; numbers compared with a limit, words compared or read."""
    sample = Sample(random, split)
    easy = split == TRAIN and random.random() < EASY["share"]
    numbers = random.sample(part(W.NUMBER_FIELDS, split), 1 if easy else random.choice([1, 2, 2, 3]))
    names = random.sample(list(W.WORD_FIELDS), 1 if easy else random.choice([1, 1, 2, 3]))
    values = {f: _words_of_field(random, f, split) for f in names}
    state = {f: _json_number(random, split, *((0, 99) if random.random() < 0.7 else (100, 999))) for f in numbers}
    state.update({f: random.choice(values[f]) for f in names})
    if len(numbers) == 1:
        sample.probes.update(_digits("number_", state[numbers[0]]))
    keys = list(state)
    random.shuffle(keys)
    sample.state = {k: state[k] for k in keys}
    if random.random() < 0.15:
        sample.state = {random.choice(part(W.OBJECT_NAMES, split)): sample.state}
    for kind in random.choices(["above", "below", "equals", "value"], [42, 18, 32, 8], k=random.choice([1, 2, 3, 3, 4])):
        if kind in ("above", "below"):
            field = random.choice(numbers)
            value, limit = state[field], _another_number(random, split, state[field])
            sample.ask_yes_no(kind, (value > limit) == (kind == "above"), q=_named(random, field), v=limit,
                              probes=_digits("value_", value) | _digits("limit_", limit))
        elif kind == "equals":
            field = random.choice(names)
            truth = random.random() < 0.5
            other = random.choice([v for v in values[field] if v != state[field]] or ["none"])
            sample.ask_yes_no(kind, truth, q=_named(random, field), v=state[field] if truth else other)
        else:
            field = random.choice(names)
            sample.ask_one_of(kind, state[field], values[field], 1, 3, 0.15, q=_named(random, field))
            question = next(reversed(sample.questions.values()))
            if not question.get("instructions"):  # The id must then say which field is meant.
                name = next(reversed(sample.questions))
                _rename(sample, name, field)
    return sample


def _rename(sample, old, new):
    while new in sample.questions:
        new += "_%d" % sample.random.randint(2, 9)
    for table in (sample.questions, sample.answers, sample.skills):
        table[new] = table.pop(old)
