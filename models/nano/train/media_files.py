"""Writes pictures as PNG and clips as FFV1 in Matroska: decoding gives the same pixels."""

from fractions import Fraction

import av
from PIL import Image


def save_picture(path, array):
    Image.fromarray(array).save(path, optimize=True)


def save_clip(path, frames, fps):
    with av.open(path, "w", format="matroska") as container:
        stream = container.add_stream("ffv1", rate=fps)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "bgr0"
        stream.time_base = Fraction(1, fps)
        for i, array in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(array, format="rgb24")
            frame.pts, frame.time_base = i, Fraction(1, fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
