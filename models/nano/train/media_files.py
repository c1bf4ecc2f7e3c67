"""Pictures as PNG and clips as FFV1 in Matroska: written without loss, read as clefkit reads them."""

import math
from fractions import Fraction

import av
import numpy as np
from PIL import Image

import config


def save_picture(path, array):
    Image.fromarray(array).save(path, optimize=True)


def save_clip(path, frames, fps):
    with av.open(path, "w", format="matroska", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("ffv1", rate=fps)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "bgr0"
        stream.time_base = Fraction(1, fps)
        for i, array in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(array, format="rgb24")
            frame.pts, frame.time_base = i, Fraction(1, fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def fitted(h, w, frames, limits):
    """smart_resize of model.md 5: sides of multiples of 32 within `limits` of all frames' pixels."""
    low, high = limits
    rows, columns = (max(32, round(x / 32) * 32) for x in (h, w))
    if rows * columns * frames > high:
        beta = math.sqrt(frames * h * w / high)
        rows, columns = (max(32, math.floor(x / beta / 32) * 32) for x in (h, w))
    elif rows * columns * frames < low:
        beta = math.sqrt(low / (frames * h * w))
        rows, columns = (math.ceil(x * beta / 32) * 32 for x in (h, w))
    return rows, columns


def _resized(image, size):
    h, w = size
    return np.asarray(image if image.size == (w, h) else image.resize((w, h), Image.Resampling.BICUBIC))


def load_picture(path):
    with Image.open(path) as image:
        image = image.convert("RGB")
        return _resized(image, fitted(image.height, image.width, 1, config.PICTURE_PIXELS))


def load_clip(path):
    """(frames, times) of a clip that is short and slow enough to be read whole."""
    with av.open(path) as container:
        decoded = [(float(f.time), f.to_image()) for f in container.decode(video=0)]
    times = [round(t - decoded[0][0], 3) for t, _ in decoded]
    n = len(times)
    rate = (n - 1) / times[-1]
    if n > config.CLIP_FRAMES[1] or rate > config.CLIP_FPS + 0.01:
        raise ValueError("%s: %d frames at %g a second, expected at most %d at %d" % (
            path, n, rate, config.CLIP_FRAMES[1], config.CLIP_FPS))
    image = decoded[0][1]
    size = fitted(image.height, image.width, 2 * math.ceil(n / 2), config.CLIP_PIXELS)
    return np.stack([_resized(x, size) for _, x in decoded]), times
