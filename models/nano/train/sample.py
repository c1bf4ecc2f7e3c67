"""What every generator returns, and helpers to ask questions of varied form."""

import questions as Q
from wording import TRAIN, choose, part, pick

# Description templates of choices that have no list of their own.
_PLAIN = ["the answer is {x}", "it is {x}", "{x}"]


class Sample:
    """One request with its answers.

    `answers` holds the option's index in encoding order, `skills` what a question trains,
    `probes` labels of the whole state and `question_probes` labels at a question's end (both
    are helpers of training only).
    """

    def __init__(self, random, split):
        self.random, self.split = random, split
        self.state, self.pictures, self.clips = "", [], []
        self.questions, self.answers, self.skills = {}, {}, {}
        self.probes, self.question_probes, self.vision_probes = {}, {}, []

    def request(self):
        return dict(state=self.state, images=self.pictures, videos=self.clips,
                    questions=self.questions)

    def _add(self, skill, question, answer, probes=None):
        random = self.random
        name = base = random.choice(Q.IDS[skill])
        if random.random() < 0.15:
            name = "%s_%d" % (base, random.randint(1, 9))
        while name in self.questions:
            name = "%s%d" % (base, random.randint(2, 99))
        if not question.get("instructions"):
            question.pop("instructions", None)
        self.questions[name] = question
        self.answers[name], self.skills[name] = answer, skill
        if probes:
            self.question_probes[name] = probes

    def wording(self, skill, **slots):
        text = pick(self.random, Q.ASK[skill], self.split)
        if slots:
            text = text.format(**{k: choose(self.random, str(v)) for k, v in slots.items()})
        return text  # As written: a leading field name keeps its case.

    def ask_yes_no(self, skill, truth, probes=None, text=None, **slots):
        question = {"type": "noul", "instructions": text or self.wording(skill, **slots)}
        x = self.random.random()
        if x < 0.35 and skill in Q.YES_NO:
            yes, no = self._pair(Q.YES_NO[skill])
            question["criteria"] = {"true": yes, "false": no}
        elif x < 0.55:
            question["criteria"] = {"true": None, "false": None}
        self._add(skill, question, 0 if truth else 1, probes)

    def _pair(self, entries):
        sides = self.random.choice(part(entries, self.split)).split(";")
        return [choose(self.random, side) for side in sides]

    def ask_choice(self, skill, options, answer, probes=None, text=None, **slots):
        """options: (id, description or None) in the order that the request shows."""
        question = {"type": "choice", "criteria": dict(options),
                    "instructions": self.wording(skill, **slots) if text is None else text}
        self._add(skill, question, sorted(question["criteria"]).index(answer), probes)

    def ask_one_of(self, skill, truth, others, least=1, most=4, described=0.3, descriptions=None,
                   **slots):
        """A choice between names: the true one and some of the others."""
        random = self.random
        others = [x for x in dict.fromkeys(others) if x != truth]
        names = [truth] + random.sample(others, min(len(others), random.randint(least, most)))
        random.shuffle(names)
        template = random.choice(_PLAIN) if random.random() < described else None
        options = []
        for name in names:
            text = None
            if template:
                text = template.format(x=name.replace("_", " "))
                if descriptions and name in descriptions and random.random() < 0.7:
                    text = pick(random, descriptions[name], self.split)
            options.append((name, text))
        self.ask_choice(skill, options, truth, **slots)

    def ask_score(self, skill, levels, answer, probes=None, **slots):
        grammar = self.random.choice(part(Q.LEVELS[levels], self.split))
        criteria = [choose(self.random, level) for level in grammar.split(";")]
        question = {"type": "score", "instructions": self.wording(skill, **slots),
                    "criteria": criteria}
        self._add(skill, question, answer, probes)


def number(random, split, low, high):
    """A number of messages: even in training, odd in held-out sets."""
    value = random.randint(low, high)
    return value - value % 2 if split == TRAIN else value | 1
