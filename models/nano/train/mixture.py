"""Which generator makes the next record, and the tokenizer's training texts."""

import random as random_module

import numpy as np

import clips
import pictures
import text
from record import option_text, options_of, render
from wording import TRAIN

KINDS = ("support", "language", "facts", "picture", "clip", "mixed")
SKILL_OF = {  # Reported skill of each kind of question.
    "route": "routing", "refund": "refund", "cancel": "cancellation", "thanks": "thanks",
    "urgency": "urgency", "urgent": "urgent_yes_no", "sentiment": "sentiment", "mention": "mention",
    "language": "language", "is_language": "language_yes_no", "above": "json_above", "below": "json_below",
    "equals": "json_equals", "value": "json_value", "colour": "colour", "dominant": "dominant_colour",
    "shape": "shape", "count": "count", "position": "position", "is": "picture_yes_no", "two": "two_pictures",
    "motion": "motion", "first": "colour_order", "last": "colour_order", "order": "colour_order",
    "event": "appearance", "appears": "appearance", "vanishes": "appearance",
}


def _mixed(random, np_random, split):
    """A text record with a picture or a clip, and questions about both."""
    sample = make(random.choice(["support", "support", "facts", "language"]), random, np_random, split)
    other = make(random.choice(["picture", "picture", "clip"]), random, np_random, split)
    sample.pictures, sample.clips, sample.vision_probes = other.pictures, other.clips, other.vision_probes
    sample.probes.update(other.probes)
    questions = sample.questions | other.questions  # On a shared id, the picture's.
    names = list(questions)
    random.shuffle(names)
    answers, skills = sample.answers | other.answers, sample.skills | other.skills
    for name in other.questions:
        sample.question_probes.pop(name, None)
    names = names[: random.choice([2, 3, 4])]
    sample.questions = {n: questions[n] for n in names}
    sample.answers, sample.skills = ({n: table[n] for n in names} for table in (answers, skills))
    return sample


def make(kind, random, np_random, split):
    if kind == "mixed":
        return _mixed(random, np_random, split)
    if kind == "picture":
        return pictures.picture(random, np_random, split)
    if kind == "clip":
        return clips.clip(random, np_random, split)
    return {"support": text.support, "language": text.language, "facts": text.facts}[kind](random, split)


def set_ease(share):
    """Share of easy texts and scenes (training's curriculum)."""
    text.EASY["share"] = pictures.EASY["share"] = share


def tokenizer_texts(seed, count):
    """User texts of training records; pictures are drawn rarely, for their questions only."""
    random, np_random = random_module.Random(seed), np.random.default_rng(seed)
    for _ in range(count):
        kind = random.choices(KINDS, [5, 3, 3, 0.6, 0.6, 0.3])[0]
        sample = make(kind, random, np_random, TRAIN)
        yield render(sample.state)
        for name, question in sample.questions.items():
            yield name
            yield render(question.get("instructions", ""))
            for option in options_of(question):
                yield option_text(*option)
