"""Pictures of one to four shapes, or of coloured areas, with questions.

Held out: sizes of pictures, sizes of shapes, and grounds. Never a colour with a shape: that would
teach "this colour is never that shape".
"""

import math

import numpy as np
from PIL import Image, ImageDraw

import questions
from sample import Sample
from wording import HELD, TRAIN, part, pick

# What the skills are about; both splits use them.
COLOURS = {"red": (220, 30, 30), "green": (30, 170, 50), "blue": (40, 70, 220), "yellow": (240, 220, 40),
           "orange": (245, 140, 20), "purple": (140, 50, 170), "white": (245, 245, 245), "black": (15, 15, 15)}
SHAPES = ["circle", "square", "triangle", "star", "cross"]
NEAR = [{"red", "orange"}, {"yellow", "orange"}, {"blue", "purple"}, {"yellow", "white"}, {"red", "purple"}]
POSITIONS = ["top left", "top", "top right", "left", "center", "right", "bottom left", "bottom", "bottom right"]
POSITION_STYLES = [
    dict(zip(POSITIONS, POSITIONS)),
    {p: p.replace(" ", "_") for p in POSITIONS},
    dict(zip(POSITIONS, ["upper left", "upper middle", "upper right", "middle left", "middle", "middle right",
                         "lower left", "lower middle", "lower right"])),
]
POSITION_WORDS = {
    "top": ["at the top, in the middle", "(above|over) the center", HELD, "in the middle of the top"],
    "bottom": ["at the bottom, in the middle", "(below|under) the center", HELD, "in the middle of the bottom"],
    "center": ["in the middle of the (picture|image)", "in the center", HELD, "at the center of the picture"],
    "left": ["at the left (side|edge)", "on the left, half way down", HELD, "on the left side"],
    "right": ["at the right (side|edge)", "on the right, half way down", HELD, "on the right side"],
    "top left": ["the upper left corner", "at the top on the left", HELD, "in the top left corner"],
    "top right": ["the upper right corner", "at the top on the right", HELD, "in the top right corner"],
    "bottom left": ["the lower left corner", "at the bottom on the left", HELD, "in the bottom left corner"],
    "bottom right": ["the lower right corner", "at the bottom on the right", HELD, "in the bottom right corner"],
}
THING = "(shape|object|thing)"
STATES = ["", "", "", "Look at the picture.", "photo", None, {"file": "a.png"}, {"source": "camera"}, HELD,
          "", "", "picture", {"file": "b.jpg"}]

# Grounds that no question names, and those that are colours of the list too.
GROUNDS = [(128, 128, 128), (90, 60, 40), (190, 190, 190), (60, 60, 60), (20, 90, 100), (250, 190, 200), (10, 30, 70),
           (200, 220, 240), HELD, (160, 150, 130), (85, 85, 110), (225, 205, 215), (40, 50, 40)]
SIZES = [(2, 2), (3, 3), (4, 4), (2, 3), (3, 2), (4, 3), (4, 2), (2, 4), (2, 5), (6, 2), HELD, (3, 4), (5, 3), (3, 5), (2, 6), (5, 2)]
# Radius of a shape / shorter side of the picture: training keeps out of the held-out gaps.
RADII = [(0.10, 0.125), (0.145, 0.175), (0.195, 0.25), (0.28, 0.36), HELD, (0.127, 0.143), (0.178, 0.192), (0.255, 0.275)]

EASY = {"share": 0.0}


def jitter(random, colour):
    rgb = COLOURS[colour] if isinstance(colour, str) else colour
    return tuple(max(0, min(255, v + random.randint(-14, 14))) for v in rgb)


def differ(a, b):
    return a != b and {a, b} not in NEAR


def radius(random, split, low, high):
    """A relative radius of the split within [low, high]."""
    spans = [(max(a, low), min(b, high)) for a, b in part(RADII, split) if a < high and b > low]
    return random.uniform(*random.choice(spans))


def canvas_size(random, split, most=4):
    sizes = [s for s in part(SIZES, split) if max(s) <= most]
    w, h = random.choice(sizes)
    return 32 * w, 32 * h


def ground(random, split, colour):
    """(RGB, name or None) of a ground on which the colour shows."""
    easy = split == TRAIN and random.random() < EASY["share"]
    if easy:
        name = "black" if colour in ("white", "yellow") else "white"
        return COLOURS[name], name
    if random.random() < 0.5:
        choices = [g for g in part(GROUNDS, split)
                   if sum(abs(x - y) for x, y in zip(g, COLOURS[colour])) > 170]
        return random.choice(choices), None
    name = random.choice([c for c in ("white", "black", "white", "black", "blue", "green", "yellow", "red")
                          if differ(c, colour)])
    return COLOURS[name], name


def canvas(random, w, h, rgb):
    rgb = jitter(random, rgb)
    if random.random() < 0.3:
        ramp = np.linspace(-12, 12, w)[None, :, None] * random.choice([-1, 1])
        array = np.broadcast_to(np.asarray(rgb, np.float32) + ramp, (h, w, 3)).clip(0, 255)
        return Image.fromarray(array.astype(np.uint8))
    return Image.new("RGB", (w, h), rgb)


def _points(shape, turn):
    circle = lambda k, n: turn - math.pi / 2 + k * 2 * math.pi / n
    if shape == "square":
        return [(1.25 * math.cos(a), 1.25 * math.sin(a)) for a in (circle(k + 0.5, 4) for k in range(4))]
    if shape == "triangle":
        return [(1.25 * math.cos(a), 1.25 * math.sin(a)) for a in (circle(k, 3) for k in range(3))]
    if shape == "star":
        return [(r * math.cos(a), r * math.sin(a))
                for a, r in ((circle(k, 10), 0.5 if k % 2 else 1.3) for k in range(10))]
    t, u = 0.33, 1.15
    cross = [(-t, -u), (t, -u), (t, -t), (u, -t), (u, t), (t, t), (t, u), (-t, u), (-t, t), (-u, t), (-u, -t), (-t, -t)]
    c, s = math.cos(turn), math.sin(turn)
    return [(x * c - y * s, x * s + y * c) for x, y in cross]


_TURNS = {"circle": 0, "square": 0.15, "triangle": 0.2, "star": 0.3, "cross": 0.15}


def paint(image, shape, x, y, size, rgb, turn, smooth):
    """Draws one shape; `smooth` paints at three times the size and shrinks (soft edges)."""
    turn = turn * _TURNS[shape]
    if not smooth:
        _paint(ImageDraw.Draw(image), shape, x, y, size, rgb, turn)
        return
    side = int(size * 1.4) + 2
    left, top = int(x) - side, int(y) - side
    mask = Image.new("L", (6 * side, 6 * side), 0)
    _paint(ImageDraw.Draw(mask), shape, 3 * (x - left), 3 * (y - top), 3 * size, 255, turn)
    image.paste(rgb, (left, top), mask.resize((2 * side, 2 * side), Image.Resampling.BOX))


def _paint(draw, shape, x, y, size, fill, turn):
    if shape == "circle":
        draw.ellipse([x - size, y - size, x + size, y + size], fill=fill)
    else:
        draw.polygon([(x + u * size, y + v * size) for u, v in _points(shape, turn)], fill=fill)


def finish(random, np_random, array):
    """Noise on some pictures; the same for all frames of a clip's array."""
    if random.random() < 0.35:
        noise = np_random.standard_normal(array.shape, np.float32) * random.uniform(1, 7)
        return (array + noise).clip(0, 255).astype(np.uint8)
    return array


def changed(array, base):
    """Where shapes are, a share per token block [h / 32, w / 32] (training aid)."""
    mask = (array != base).any(-1).astype(np.float32)
    h, w = mask.shape
    return mask.reshape(h // 32, 32, w // 32, 32).mean((1, 3))


def one_picture(random, np_random, split, mode):
    """mode: place (one shape in one of nine cells), one (one shape anywhere), many (1 to 4).
    -> (array, facts)."""
    w, h = canvas_size(random, split, 6)
    small = min(w, h)
    colour, shape = random.choice(list(COLOURS)), random.choice(SHAPES)
    rgb, ground_name = ground(random, split, colour)
    image = canvas(random, w, h, rgb)
    base = np.asarray(image).copy()
    fill, smooth = jitter(random, colour), random.random() < 0.5
    facts = dict(colour=colour, shape=shape, ground=ground_name, count=1, position=None)
    if mode == "place":
        k = random.randrange(9)
        facts["position"] = POSITIONS[k]
        size = small * radius(random, split, 0.11, 0.155)
        x = w * ((k % 3) + 0.5) / 3 + random.uniform(-0.045, 0.045) * w
        y = h * ((k // 3) + 0.5) / 3 + random.uniform(-0.045, 0.045) * h
        spots = [(x, y, size)]
    elif mode == "one":
        low = 0.24 if split == TRAIN and random.random() < EASY["share"] else 0.15
        size = small * radius(random, split, low, 0.36)
        spots = [(random.uniform(1.3 * size, w - 1.3 * size), random.uniform(1.3 * size, h - 1.3 * size), size)]
    else:
        spots, wanted = [], random.randint(1, 4)
        size = small * radius(random, split, 0.10, 0.16)
        for _ in range(300):
            x, y = random.uniform(1.3 * size, w - 1.3 * size), random.uniform(1.3 * size, h - 1.3 * size)
            if all((x - a) ** 2 + (y - b) ** 2 > (2.9 * size) ** 2 for a, b, _ in spots):
                spots.append((x, y, size))
            if len(spots) == wanted:
                break
        facts["count"] = len(spots)
    facts["centres"] = np.zeros((h // 32, w // 32), np.int64)  # Shapes by the token of their centre.
    for x, y, _ in spots:
        facts["centres"][min(int(y), h - 1) // 32, min(int(x), w - 1) // 32] += 1
    for x, y, size in spots:
        paint(image, shape, x, y, size, fill, random.uniform(-1, 1), smooth)
    array = np.asarray(image).copy()
    facts["cells"] = changed(array, base)
    return finish(random, np_random, array), facts


def areas_picture(random, np_random, split):
    """Bands and boxes of two or three colours, one of which covers most. -> (array, colour)"""
    w, h = canvas_size(random, split, 6)
    main = random.choice(list(COLOURS))
    others = random.sample([c for c in COLOURS if differ(c, main)], random.choice([1, 2]))
    image = canvas(random, w, h, COLOURS[main])
    draw = ImageDraw.Draw(image)
    left = random.uniform(0.12, 0.36)  # Share of the other colours together.
    for other in others:
        share = left / len(others)
        rgb = jitter(random, other)
        style = random.randrange(3)
        if style == 0:
            x = random.uniform(0, 1 - share)
            draw.rectangle([x * w, 0, (x + share) * w, h], fill=rgb)
        elif style == 1:
            y = random.uniform(0, 1 - share)
            draw.rectangle([0, y * h, w, (y + share) * h], fill=rgb)
        else:
            side = share**0.5
            x, y = random.uniform(0, 1 - side), random.uniform(0, 1 - side)
            draw.rectangle([x * w, y * h, (x + side) * w, (y + side) * h], fill=rgb)
    return finish(random, np_random, np.asarray(image).copy()), main


def ask_about_shape(sample, kind, facts):
    """One question about a picture of one kind of shape."""
    random = sample.random
    named = "(%s|shape|object)" % facts["shape"]
    if kind == "colour":
        sample.ask_one_of(kind, facts["colour"], list(COLOURS), s=named)
    elif kind == "dominant":
        sample.ask_one_of(kind, facts["ground"], list(COLOURS))
    elif kind == "shape":
        sample.ask_one_of(kind, facts["shape"], SHAPES)
    elif kind == "position":
        style = random.choice(POSITION_STYLES)
        sample.ask_one_of(kind, style[facts["position"]], [style[p] for p in POSITIONS], 2, 5,
                          descriptions={style[p]: POSITION_WORDS[p] for p in POSITIONS}, s=named)
    elif kind == "is":
        colour = facts["colour"] if random.random() < 0.6 else random.choice(list(COLOURS))
        shape = facts["shape"] if random.random() < 0.6 else random.choice(SHAPES)
        template = pick(random, questions.ASK[kind], sample.split)
        truth = (("{c}" not in template or colour == facts["colour"])
                 and ("{s}" not in template or shape == facts["shape"]))
        sample.ask_yes_no(kind, truth, text=template.format(c=colour, s=shape))
    else:
        x = random.random()
        if x < 0.3:
            sample.ask_score(kind, "count", facts["count"])
        else:
            names = "one two three four".split() if x < 0.65 else list("1234")
            sample.ask_one_of(kind, names[facts["count"] - 1], names, 1, 3, 0.15)


def _probe(facts):
    return dict(cells=facts["cells"], centres=facts["centres"],
                colour=list(COLOURS).index(facts["colour"]), shape=SHAPES.index(facts["shape"]))


def picture(random, np_random, split):
    """One picture (sometimes two) with one to four questions."""
    sample = Sample(random, split)
    sample.state = random.choice(part(STATES, split))
    easy = split == TRAIN and random.random() < EASY["share"]
    x = random.random()
    if x < 0.08 and not easy:
        return _two_pictures(sample, np_random)
    if x < 0.16:
        array, main = areas_picture(random, np_random, split)
        sample.pictures = [array]
        sample.probes["dominant"] = list(COLOURS).index(main)
        sample.vision_probes.append(None)
        sample.ask_one_of("dominant", main, list(COLOURS))
        return sample
    mode = random.choices(["place", "one", "many"], [36, 14, 50])[0]
    array, facts = one_picture(random, np_random, split, mode)
    sample.pictures = [array]
    sample.vision_probes.append(_probe(facts))
    sample.probes.update(colour=list(COLOURS).index(facts["colour"]), shape=SHAPES.index(facts["shape"]),
                         count=facts["count"] - 1)
    kinds = ["colour", "shape", "shape", "is"]
    if mode == "place":
        sample.probes["position"] = POSITIONS.index(facts["position"])
        kinds += ["position"] * 6
    elif mode == "many":
        kinds += ["count"] * 6
    elif facts["ground"]:
        kinds.append("dominant")
    if mode != "many" and random.random() < 0.08:
        kinds.append("count")
    random.shuffle(kinds)
    for kind in list(dict.fromkeys(kinds))[: random.choice([1, 2, 3, 3])]:
        ask_about_shape(sample, kind, facts)
    return sample


def _two_pictures(sample, np_random):
    random = sample.random
    pairs = [one_picture(random, np_random, sample.split, "one") for _ in range(2)]
    sample.pictures = [array for array, _ in pairs]
    sample.vision_probes = [_probe(facts) for _, facts in pairs]
    for i in random.sample([0, 1], random.choice([1, 2])):
        facts = pairs[i][1]
        sample.ask_one_of("two", facts["colour"], list(COLOURS), s="(%s|shape|object)" % facts["shape"],
                          n=("first", "second")[i], d=str(i + 1))
    return sample
