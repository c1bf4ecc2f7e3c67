"""Clips of four to eight frames: motion, order of colours, appearance, with questions."""

import numpy as np
from PIL import Image

import pictures as P
from sample import Sample
from wording import HELD, TRAIN, part

# What the skill is about; both splits use them.
DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
EVENTS = ["appears", "disappears", "stays"]
WORDS = {
    "left": ["to the left", "towards the left (side|edge)", HELD, "it goes to the left side"],
    "right": ["to the right", "towards the right (side|edge)", HELD, "it goes to the right side"],
    "up": ["upwards", "towards the top", HELD, "it goes to the top"],
    "down": ["downwards", "towards the bottom", HELD, "it goes to the bottom"],
    "appears": ["it was not there at first", "it (comes|shows up) later", HELD, "at first nothing is there"],
    "disappears": ["it is gone at the end", "it (leaves|vanishes)", HELD, "at the end nothing is there"],
    "stays": ["it is (always there|there all the time)", "nothing changes", HELD, "it is there from start to end"],
}
STATES = ["", "", "", "Watch the clip.", "video", None, {"file": "a.mp4"}, {"source": "camera"}, HELD,
          "", "", "clip", {"file": "b.mp4"}]
# Frames of the size in blocks of 32 pixels (width, height).
SIZES = [(2, 2), (3, 3), (3, 2), (4, 2), (4, 3), (2, 5), (2, 6), (2, 5), HELD, (2, 3), (2, 4), (3, 4)]


def _probe(cells, sample, **labels):
    sample.vision_probes.append(dict(cells=cells, **labels))


def clip(random, np_random, split):
    """One clip with one to three questions."""
    sample = Sample(random, split)
    sample.state = random.choice(part(STATES, split))
    m, fps = random.randint(4, 8), random.choice([1, 2, 2, 2])
    w, h = (32 * x for x in random.choice(part(SIZES, split)))
    colour, shape = random.choice(list(P.COLOURS)), random.choice(P.SHAPES)
    rgb, _ = P.ground(random, split, colour)
    base = P.canvas(random, w, h, rgb)
    size = min(w, h) * P.radius(random, split, 0.13, 0.21)
    fill, turn, smooth = P.jitter(random, colour), random.uniform(-1, 1), random.random() < 0.5
    named = "(%s|shape|object)" % shape
    labels = dict(colour=list(P.COLOURS).index(colour), shape=P.SHAPES.index(shape))
    kind = random.choices(["motion", "colours", "event"], [55, 27, 18])[0]
    frames, cells_base = [], np.asarray(base)

    def frame(x=None, y=None, rgb=fill, size=size):
        image = base.copy()
        if x is not None:
            P.paint(image, shape, x * w, y * h, size, rgb, turn, smooth)
        frames.append(np.asarray(image))

    if kind == "motion":
        way = random.choice(list(DIRECTIONS))
        dx, dy = DIRECTIONS[way]
        length = random.uniform(0.36, 0.55)
        begin, other = random.uniform(0.22, 0.78 - length), random.uniform(0.28, 0.72)
        for i in range(m):
            t = begin + length * i / (m - 1)
            t = t if dx + dy > 0 else 1 - t
            frame(t if dx else other, t if dy else other)
        sample.probes.update(motion=list(DIRECTIONS).index(way), event=2)
        labels["motion"] = sample.probes["motion"]
        sample.ask_one_of("motion", way, list(DIRECTIONS), 1, 3, descriptions=WORDS, s=named)
        more, event = ["colour", "event", "shape"], "stays"
    elif kind == "colours":
        second = random.choice([c for c in P.COLOURS if P.differ(c, colour)])
        fills = [fill, P.jitter(random, second)]
        change = random.randint(2, m - 2)
        whole = random.random() < 0.5 or sum(abs(a - b) for a, b in zip(rgb, P.COLOURS[second])) < 170
        x, y = random.uniform(0.3, 0.7), random.uniform(0.3, 0.7)
        for i in range(m):
            if whole:
                frames.append(np.asarray(Image.new("RGB", (w, h), fills[i >= change])))
            else:
                frame(x, y, fills[i >= change], size * 1.4)
        labels = {}
        sample.probes.update(first=list(P.COLOURS).index(colour), last=list(P.COLOURS).index(second))
        others = [c for c in P.COLOURS if c not in (colour, second)]
        for asked in random.sample(["first", "last", "order"], random.choice([1, 2])):
            if asked == "order":
                join = random.choice(["%s then %s", "%s_%s", "first %s, then %s"])
                pairs = [join % (a, b) for a, b in ((colour, second), (second, colour), (colour, others[0]), (others[0], second))]
                sample.ask_one_of(asked, pairs[0], pairs[1:] if random.random() < 0.5 else pairs[1:2], 1, 2, 0)
            else:
                truth, wrong = (colour, second) if asked == "first" else (second, colour)
                sample.ask_one_of(asked, truth, [wrong] + random.sample(others, random.randint(0, 2)), 3, 3)
        more, event = [], None
    else:
        event, change = random.choice(EVENTS), random.randint(2, m - 2)
        x, y = random.uniform(0.25, 0.75), random.uniform(0.25, 0.75)
        for i in range(m):
            there = event == "stays" or (i >= change) == (event == "appears")
            frame(x if there else None, y, size=size * 1.2)
        sample.probes["event"] = EVENTS.index(event)
        sample.ask_one_of("event", event, EVENTS, 1, 2, descriptions=WORDS, s=named)
        more = ["colour", "appears", "vanishes"]
    if event:
        sample.probes.update(colour=list(P.COLOURS).index(colour))
    for asked in random.sample(more, min(len(more), random.choice([0, 1, 1, 2]))):
        if asked == "event":
            sample.ask_one_of(asked, event, EVENTS, 1, 2, descriptions=WORDS, s=named)
        elif asked in ("appears", "vanishes"):
            sample.ask_yes_no(asked, event == {"appears": "appears", "vanishes": "disappears"}[asked], s=named)
        else:
            P.ask_about_shape(sample, asked, dict(colour=colour, shape=shape))
    for k in range(0, m, 2):
        pair = frames[k : k + 2] if k + 1 < m else [frames[k]] * 2
        cells = np.maximum(*(P.changed(f, cells_base) for f in pair))
        _probe(cells, sample, **labels)
    array = P.finish(random, np_random, np.stack(frames))
    sample.clips = [(array, [i / fps for i in range(m)])]
    return sample
