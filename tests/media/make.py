#!/usr/bin/env python3
"""Made the files of this folder and `expected.json`: what Pillow 13 and PyAV 18 (its own FFmpeg) read
from them. Needs pillow, av, numpy and the program ffmpeg. Not a part of the tests: encoders of other
versions write other bytes.

Per picture: size and SHA-256 of the RGB bytes, upright (`apply`) and as stored (`ignore`). Per clip:
frame times, and the mean of each channel, per frame and of the first frame's upper left 16x16, because other versions of FFmpeg round colours
another way by a level; `exact` clips hold RGB and give a SHA-256 of all frames."""
import hashlib, io, json, pathlib, subprocess
import av, numpy
from PIL import Image, ImageOps

here = pathlib.Path(__file__).resolve().parent
y, x = numpy.mgrid[0:45, 0:70]
scene = numpy.stack([x * 255 // 69, y * 255 // 44, (x * y) % 256], 2).astype(numpy.uint8)
smooth = numpy.stack([x * 3, y * 5, 128 + x - y], 2).astype(numpy.uint8)
picture = Image.fromarray(scene)
exif = lambda n: (lambda e: (e.__setitem__(0x0112, n), e)[1])(Image.Exif())


def save(name, image=picture, **options):
    image.save(here / name, **options)


save("plain.jpg", Image.fromarray(smooth), quality=90)
save("progressive.jpg", Image.fromarray(smooth), quality=90, progressive=True)
save("subsampled.jpg", Image.fromarray(smooth), quality=85, subsampling=2)
save("cmyk.jpg", Image.fromarray(smooth).convert("CMYK"), quality=95)
save("gray.jpg", Image.fromarray(smooth).convert("L"), quality=90)
for n in range(2, 9):
    save(f"exif{n}.jpg", Image.fromarray(smooth), quality=90, exif=exif(n))
save("exif8.png", exif=exif(8))
save("exif3.webp", lossless=True, exif=exif(3))
save("rgb.png")
save("interlaced_gray.png", picture.convert("L"))
save("gray1.png", picture.convert("1"))
save("palette.png", picture.quantize(13))
transparent = picture.convert("RGBA")
transparent.putalpha(Image.fromarray((x * 3).astype(numpy.uint8)))
save("alpha.png", transparent)
save("alpha.webp", transparent, lossless=True, exact=True)
save("lossy.webp", Image.fromarray(smooth), quality=80)
save("gray_alpha.png", transparent.convert("LA"))
save("first.gif", picture.quantize(40), save_all=True, append_images=[picture.rotate(180).quantize(40)])
save("one_pixel.png", picture.crop((3, 4, 4, 5)))
save("wide.png", Image.fromarray(numpy.tile(scene[:2], (1, 240, 1))[:, :16384]))

# PNG of 16 bits a channel: Pillow does not write it.
import struct, zlib
deep = (numpy.stack([x * 949, y * 1489, (x * y * 17) % 65536], 2)).astype(">u2")
raw = b"".join(b"\0" + row.tobytes() for row in deep)
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
(here / "deep.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 70, 45, 16, 2, 0, 0, 0))
                                + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def clip(name, *options, frames=8, size="64x48", rate="4"):
    subprocess.run(["ffmpeg", "-y", "-loglevel", "error", "-f", "lavfi", "-i",
                    f"testsrc2=size={size}:rate={rate}:duration={frames / float(eval(rate))}", *options,
                    "-fflags", "+bitexact", "-flags:v", "+bitexact", str(here / name)], check=True)


clip("h264.mp4", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18")
clip("h264_frames_out_of_order.mp4", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-bf", "3", "-crf", "18", frames=12)
clip("h265.mp4", "-c:v", "libx265", "-pix_fmt", "yuv420p", "-x265-params", "log-level=none", "-crf", "18")
clip("vp8.webm", "-c:v", "libvpx", "-b:v", "300k")
clip("vp9.webm", "-c:v", "libvpx-vp9", "-b:v", "300k")
clip("av1.mkv", "-c:v", "libaom-av1", "-cpu-used", "8", "-crf", "30", frames=4)
clip("rgb.mkv", "-c:v", "ffv1", "-pix_fmt", "bgr0", rate="30000/1001")
clip("full_range.mp4", "-c:v", "libx264", "-vf", "scale=out_range=full:out_color_matrix=bt709",
     "-pix_fmt", "yuv420p", "-color_range", "pc", "-colorspace", "bt709", "-crf", "12", frames=3)
clip("with_sound.mp4", "-f", "lavfi", "-i", "sine=duration=2", "-c:v", "libx264", "-pix_fmt", "yuv420p",
     "-c:a", "aac", "-shortest")
clip("variable_rate.mkv", "-c:v", "ffv1", "-pix_fmt", "bgr0", "-vf", "select='not(eq(n,2)+eq(n,3)+eq(n,4))'",
     "-vsync", "vfr")
clip("animated.gif", "-vf", "format=pal8", frames=5)
clip("two_frames.mkv", "-c:v", "ffv1", "-pix_fmt", "bgr0", frames=2)
subprocess.run(["ffmpeg", "-y", "-loglevel", "error", "-i", str(here / "h264.mp4"), "-c", "copy",
                "-metadata:s:v:0", "rotate=90", "-fflags", "+bitexact", str(here / "rotated.mp4")], check=True)
clip("mpeg4.avi", "-c:v", "mpeg4", frames=2)
clip("mpeg2.mkv", "-c:v", "mpeg2video", frames=2, rate="25")
subprocess.run(["ffmpeg", "-y", "-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=0.2", "-c:a", "aac",
                "-fflags", "+bitexact", str(here / "sound_only.mp4")], check=True)

expected = {"pictures": {}, "clips": {}}
for path in sorted(here.glob("*.*")):
    if path.suffix in (".jpg", ".png", ".webp") or path.name == "first.gif":
        image = Image.open(path)
        if path.name == "deep.png":
            upright = stored = Image.fromarray(((deep.astype(numpy.int64) * 2 + 257) // 514).astype(numpy.uint8))
        else:
            stored = image.convert("RGB")
            upright = ImageOps.exif_transpose(image).convert("RGB")
        facts = lambda i: {"height": i.height, "width": i.width, "sha256": hashlib.sha256(i.tobytes()).hexdigest()}
        expected["pictures"][path.name] = {"apply": facts(upright), "ignore": facts(stored)}
for name in ("h264.mp4", "h264_frames_out_of_order.mp4", "h265.mp4", "vp8.webm", "vp9.webm", "av1.mkv", "rgb.mkv",
             "full_range.mp4", "with_sound.mp4", "variable_rate.mkv", "animated.gif", "two_frames.mkv", "rotated.mp4"):
    with av.open(str(here / name)) as container:
        frames = list(container.decode(video=0))
    times = [float(f.pts * f.time_base) for f in frames]
    arrays = [f.to_ndarray(format="rgb24") for f in frames]
    if name == "rotated.mp4":
        turns = {90: 1, -270: 1, -90: -1, 270: -1}[frames[0].rotation]
        arrays = [numpy.rot90(a, turns) for a in arrays]
    entry = {"seconds": [t - times[0] for t in times], "height": arrays[0].shape[0], "width": arrays[0].shape[1],
             "corner": [round(float(m), 3) for m in arrays[0][:16, :16].mean((0, 1))],
             "means": [[round(float(m), 3) for m in a.mean((0, 1))] for a in arrays]}
    if name in ("rgb.mkv", "variable_rate.mkv", "two_frames.mkv"):
        entry["sha256"] = hashlib.sha256(b"".join(numpy.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()
    expected["clips"][name] = entry
(here / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
