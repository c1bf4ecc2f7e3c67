"""Samples as lines of the command line's request format, with media files beside them."""

import os

from media_files import save_clip, save_picture
from record import options_of


def expected_of(sample):
    """Answers as people write them: true or false, an option's id, a score's level."""
    answers = {}
    for name, question in sample.questions.items():
        index = sample.answers[name]
        if question["type"] == "noul":
            answers[name] = index == 0
        elif question["type"] == "choice":
            answers[name] = options_of(question)[index][0]
        else:
            answers[name] = index
    return {n: answers[n] for n in sample.questions}


def to_request(sample, folder, prefix):
    """The request as JSON; writes its media into `folder`, which `file:` paths are relative to."""
    request = {"model": "clef-nano", "state": sample.state, "questions": sample.questions}
    if sample.pictures:
        request["images"] = []
        for i, array in enumerate(sample.pictures):
            name = "%s-%d.png" % (prefix, i)
            save_picture(os.path.join(folder, name), array)
            request["images"].append("file:" + name)
    if sample.clips:
        request["videos"] = []
        for i, (frames, times) in enumerate(sample.clips):
            name = "%s-%d.mkv" % (prefix, i)
            save_clip(os.path.join(folder, name), frames, round(1 / (times[1] - times[0])))
            request["videos"].append("file:" + name)
    return request
