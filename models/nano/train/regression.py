"""Writes the regression set: regression.py FOLDER.

17 requests with 27 questions about texts, JSON, pictures and clips, as requests.jsonl with the
media beside it. Wordings, values, sizes and grounds are of the held-out parts. The set is for
comparing a conversion with its reference: questions on listed skills were chosen so that clef-nano
answers them, which says nothing about accuracy (evaluate.py does).
"""

import os
import sys

import numpy as np
from PIL import Image

import pictures as P
from media_files import save_clip, save_picture
from request_files import write_lines


def scene(w, h, ground, shapes):
    """One picture; shapes: (shape, colour, x, y, radius), places as shares of width and height."""
    image = Image.new("RGB", (w, h), ground)
    for shape, colour, x, y, size in shapes:
        P.paint(image, shape, x * w, y * h, size * min(w, h), P.COLOURS[colour], 0.3, True)
    return np.asarray(image).copy()


def noul(text, criteria=None):
    return {"type": "noul", "instructions": text} | ({"criteria": criteria} if criteria else {})


def choice(text, *names, **described):
    criteria = {n: None for n in names} | described
    return {"type": "choice", "instructions": text, "criteria": criteria}


def score(text, *levels):
    return {"type": "score", "instructions": text, "criteria": list(levels)}


SAND, SLATE, ROSE = (160, 150, 130), (85, 85, 110), (225, 205, 215)  # Held-out grounds.


def requests():
    """(id, state, pictures, clips, {id: (skill, question, expected)})."""
    colour = lambda *names: choice("Tell the colour of the shape.", *names)
    yield ("text-refund", "Good evening, the bill for September has a wrong price. Please return my money. Greetings, Hugo", [], [], {
        "team": ("routing", choice("Which team is this message for?", billing_team="anything about a payment or bill",
                                   delivery_team="late or lost packages", careers_team="interviews and work"), "billing_team"),
        "refund": ("refund", noul("Is the writer asking for a refund?"), True)})
    yield ("text-crash", "The software does not start on my Mac. It is really urgent, answer now.", [], [], {
        "queue": ("routing", choice("Which department gets this mail?", "technical_team", "return_centre", "sales_team", "press_office"), "technical_team"),
        "urgency": ("urgency", score("How urgent is the message?", "it can wait", "within a few days", "right now"), 2)})
    yield ("text-parcel", "Hello team, I still wait for the parcel with the guitar. There is no hurry at all. Thank you for your help. Lena", [], [], {
        "department": ("routing", choice("Choose the team that should handle this request.", "delivery_team", "billing_team", "access_team"), "delivery_team"),
        "thanks": ("thanks", noul("Does the message contain a thank you?"), True)})
    yield ("text-cancel", "I want to stop my subscription. I am furious, what an awful company.", [], [], {
        "cancel": ("cancellation", noul("Is the customer asking for a cancellation?", {"true": "asks to cancel", "false": "does not ask to cancel"}), True),
        "mood": ("sentiment", score("How does the person feel?", "unhappy", "neither", "happy"), 0)})
    yield ("text-spanish", "La chica joven busca un gato grande por la tarde.", [], [], {
        "language": ("language", choice("Which language is the text written in?", "English", "Spanish", "French", "German"), "Spanish")})
    yield ("text-german", "Mein Bruder braucht den Tisch, wenn es regnet.", [], [], {
        "lang": ("language", choice("What is the language of this?", en="it is written in English", fr="it is written in French", de="it is written in German"), "de")})
    yield ("json-stock", {"height": 45, "city": "Lisbon"}, [], [], {
        "over": ("json_above", noul('Is the "height" more than 17?'), True),
        "match": ("json_equals", noul('The "city" is equal to "Cairo".'), False)})
    yield ("json-row", {"row": {"animal": "donkey", "minutes": 73, "status": "lost"}}, [], [], {
        "animal": ("json_value", choice("What animal is it?", "eagle", "donkey", "turtle"), "donkey"),
        "below": ("json_below", noul('Is it true that the "minutes" is less than 31?'), False)})
    yield ("json-mail", {"message": "I am thrilled, it is perfect. I live in Toronto. It can wait, take your time.", "customer": "Fiona"}, [], [], {
        "feeling": ("sentiment", score("Rate the mood of the customer.", "unhappy", "neither", "happy"), 2),
        "urgent": ("urgent_yes_no", noul("Is the message urgent?"), False)})
    yield ("image-star", "", [scene(96, 128, SAND, [("star", "purple", 0.5, 0.5, 0.26)])], [], {
        "colour": ("colour", colour("green", "purple", "yellow"), "purple"),
        "shape": ("shape", choice("Which shape is in the picture?", "circle", "star", "square"), "star")})
    yield ("image-count", "picture", [scene(160, 96, SLATE, [("circle", "yellow", x, y, 0.13) for x, y in ((0.2, 0.3), (0.5, 0.7), (0.8, 0.3))])], [], {
        "number": ("count", choice("What is the number of shapes?", "one", "two", "three", "four"), "three")})
    yield ("image-place", "", [scene(96, 160, ROSE, [("square", "blue", 0.83, 0.17, 0.14)])], [], {
        "where": ("position", choice("Find the position of the square.", "top left", "top right", "bottom left", "bottom right", "center"), "top right")})
    yield ("two-images", "", [scene(96, 128, SLATE, [("circle", "yellow", 0.5, 0.5, 0.27)]), scene(96, 128, SAND, [("square", "blue", 0.5, 0.5, 0.27)])], [], {
        "color": ("two_pictures", choice("Which color has the square in the second picture?", "blue", "purple", "yellow"), "blue")})
    yield ("video-motion", "clip", [], [[scene(64, 96, SAND, [("circle", "blue", 0.25 + 0.5 * i / 5, 0.5, 0.18)]) for i in range(6)]], {
        "direction": ("motion", choice("Which direction does it move?", "left", "right", "up", "down"), "right")})
    yield ("video-order", "", [], [[scene(64, 96, P.COLOURS["green" if i < 3 else "red"], []) for i in range(6)]], {
        "first": ("colour_order", choice("Which color does the clip start with?", "red", "green", "blue"), "green")})
    yield ("video-appears", "", [], [[scene(96, 128, ROSE, [("square", "black", 0.5, 0.5, 0.18)] if i >= 3 else []) for i in range(6)]], {
        "event": ("appearance", choice("What happens in the video?", appears="at first nothing is there", disappears="at the end nothing is there"), "appears"),
        "color": ("colour", colour("black", "orange", "white"), "black")})
    yield ("mixed-broken", "Hi, Diana here, the piano I got has the wrong size. Give me my 371 dollars back. Best regards, Diana",
           [scene(96, 128, SLATE, [("triangle", "orange", 0.5, 0.5, 0.26)])], [], {
               "money_back": ("refund", noul("Does the message ask for money back?"), True),
               "colour": ("colour", choice("Choose the color of the shape.", "orange", "blue", "green"), "orange")})


def main(folder):
    os.makedirs(folder, exist_ok=True)
    lines = []
    for name, state, pictures, clips, asked in requests():
        line = {"name": name, "model": "clef-nano", "state": state,
                "questions": {k: q for k, (_, q, _) in asked.items()}}
        for kind, items, ending, write in (("images", pictures, "png", save_picture),
                                           ("videos", clips, "mkv", lambda p, c: save_clip(p, np.stack(c), 2))):
            for i, item in enumerate(items):
                target = "%s%s.%s" % (name, "-%d" % (i + 1) if len(items) > 1 else "", ending)
                write(os.path.join(folder, target), item)
                line.setdefault(kind, []).append("file:" + target)
        line["expected"] = {k: e for k, (_, _, e) in asked.items()}
        line["skills"] = {k: s for k, (s, _, _) in asked.items()}
        lines.append(line)
    assert (len(lines), sum(len(x["questions"]) for x in lines)) == (17, 27)
    write_lines(os.path.join(folder, "requests.jsonl"), lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
