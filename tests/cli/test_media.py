"""ask, encode and trace with pictures and clips."""
import base64
import json
import unittest

from harness import GOLDEN, MICRO, ROOT, CommandTest, clefkit

MEDIA = GOLDEN / "media"
SAMPLES = ROOT / "tests" / "media"
QUESTION = ("--noul", "red=Is there something red?")


class Media(CommandTest):
    def ask(self, *args, **kw):
        return self.succeed_json("ask", "-m", MICRO, "--json", *args, **kw)

    def answers(self, images, videos=()):
        body = {"state": "What is shown?", "images": images, "videos": list(videos),
                "questions": {"red": {"type": "noul", "instructions": "Is there something red?"}}}
        return self.ask("--request", self.write("r.json", json.dumps(body)))["answers"]

    def test_flags_and_every_form_in_a_request_give_the_same_answer(self):
        expected = self.ask("--state", "What is shown?", *QUESTION, "--image", MEDIA / "scene.jpg")["answers"]
        encoded = base64.b64encode((MEDIA / "scene.jpg").read_bytes()).decode()
        (self.folder / "scene.jpg").write_bytes((MEDIA / "scene.jpg").read_bytes())
        for form in (f"file:{MEDIA / 'scene.jpg'}", "file:scene.jpg", encoded,
                     f"data:image/jpeg;base64,{encoded}",
                     {"content_type": "image/jpeg", "base64": encoded}):
            self.assertEqual(self.answers([form]), expected)

    def test_order_profile_and_exif_change_answers(self):
        def given(*args):
            return self.ask("--state", "x", *QUESTION, *args)["answers"]["red"]["noul"]

        first = given("--image", MEDIA / "ramp.png", "--image", MEDIA / "scene.jpg", "--video", MEDIA / "odd.mkv")
        second = given("--image", MEDIA / "scene.jpg", "--image", MEDIA / "ramp.png", "--video", MEDIA / "odd.mkv")
        self.assertNotEqual(first, second)
        photo = MEDIA / "exif6.jpg"
        self.assertNotEqual(given("--image", photo), given("--image", photo, "--exif", "ignore"))
        large = MEDIA / "edges_big.png"
        self.assertNotEqual(given("--image", large), given("--image", large, "--media-profile", "release"))

    def test_encode_counts_tokens_without_weights(self):
        found = self.succeed_json("encode", "-m", MICRO, "--json", "--state", "x", *QUESTION,
                                  "--image", MEDIA / "ramp.png")
        self.assertEqual(found["input_ids"].count(712), 64)  # 256×256: 16×16 patches, four a token.
        self.assertEqual(len(found["position_ids"]), 3)

    def test_media_kwargs_reach_the_processor(self):
        body = {"state": "x", "images": [f"file:{MEDIA / 'scene.jpg'}"],
                "questions": {"q": {"type": "noul"}},
                "media_kwargs": {"size": {"shortest_edge": 4096, "longest_edge": 40000}}}
        path = self.write("r.json", json.dumps(body))
        small = self.succeed_json("encode", "-m", MICRO, "--json", "--request", path)
        self.assertEqual(small["input_ids"].count(712), 35)
        body["media_kwargs"] = {"colour": True}
        self.fail_with(2, "ask", "-m", MICRO, "--request", self.write("r.json", json.dumps(body)),
                       contains=["media_kwargs.colour"])

    def test_bad_media_is_one_sentence(self):
        def refused(code, text, *args):
            self.fail_with(code, "ask", "-m", MICRO, "--state", "x", *QUESTION, *args, contains=[text])

        refused(2, "images[0]: ", "--image", self.folder / "absent.png")
        refused(2, "images[0]: a file beginning with", "--image", self.write("a.png", "no picture at all"))
        cut = (MEDIA / "scene.jpg").read_bytes()[:9000]
        (self.folder / "cut.jpg").write_bytes(cut)
        refused(2, "images[0]: a damaged JPEG", "--image", self.folder / "cut.jpg")
        refused(2, "videos[0]: ", "--video", MEDIA / "ramp.png")
        refused(4, "videos[0]: a clip coded as mpeg2video", "--video", SAMPLES / "mpeg2.mkv")
        refused(2, "videos[0]: a file without video", "--video", SAMPLES / "sound_only.mp4")
        # 16,384 times 2 pixels: one side more than 200 times the other.
        refused(2, "images[0]: ", "--image", SAMPLES / "wide.png")
        refused(2, "expected at most 100 together", "--max-tokens", "100",
                *[x for _ in range(4) for x in ("--image", str(MEDIA / "ramp.png"))])

    def test_one_pixel_and_panoramas_are_answered(self):
        self.ask("--state", "x", *QUESTION, "--image", SAMPLES / "one_pixel.png")
        self.ask("--state", "x", *QUESTION, "--image", MEDIA / "banner.png")

    def test_every_codec_is_answered(self):
        for name in ("h264.mp4", "h265.mp4", "vp8.webm", "vp9.webm", "av1.mkv", "animated.gif", "variable_rate.mkv",
                     "rotated.mp4", "with_sound.mp4", "two_frames.mkv"):
            self.ask("--state", "x", *QUESTION, "--video", SAMPLES / name)

    def test_questions_file_must_not_hold_pictures(self):
        path = self.write("q.json", json.dumps({"state": "x", "images": ["aaaa"], "questions": {"q": {"type": "noul"}}}))
        self.fail_with(2, "ask", "-m", MICRO, "--state", "x", "--questions", path,
                       contains=["expected questions alone"])

    def test_many_states_share_a_picture(self):
        states = self.write("s.jsonl", '"one"\n"two"\n')
        lines = self.succeed("ask", "-m", MICRO, "--states", states, *QUESTION,
                             "--image", MEDIA / "ramp.png").stdout.splitlines()
        for line, state in zip(lines, ("one", "two")):
            alone = self.ask("--state", state, *QUESTION, "--image", MEDIA / "ramp.png")
            self.assertEqual(json.loads(line)["answers"], alone["answers"])

    def test_a_bundle_has_vision_unless_text_only(self):
        bundle, text_only = self.folder / "b", self.folder / "t"
        self.succeed("convert", MICRO, "-o", bundle, "--min-weights", "4096", "--quiet")
        self.succeed("convert", MICRO, "-o", text_only, "--min-weights", "4096", "--text-only", "--quiet")
        asked = ("--state", "What is shown?", *QUESTION, "--image", MEDIA / "scene.jpg")
        expected = self.ask(*asked)["answers"]["red"]["noul"]
        found = self.succeed_json("ask", "-m", bundle, "--json", *asked)["answers"]["red"]["noul"]
        self.assertAlmostEqual(found, expected, delta=0.05)
        for command in ("ask", "encode"):
            self.fail_with(4, command, "-m", text_only, *asked,
                           contains=["images: this model has no vision encoder"])
        request = {"state": "x", "images": ["file:scene.jpg"], "questions": {"q": {"type": "noul"}}}
        (self.folder / "scene.jpg").write_bytes((MEDIA / "scene.jpg").read_bytes())
        requests = self.write("set.jsonl", json.dumps(request) + "\n")
        verified = self.succeed_json("verify", bundle, "--against", MICRO, "--requests", requests, "--json", "--quiet")
        self.assertEqual(verified["drift"]["requests"], 1)

    def test_without_the_decoder_says_where_it_looked(self):
        result = clefkit("ask", "-m", MICRO, "--state", "x", *QUESTION, "--image", MEDIA / "ramp.png",
                         env={"CLEFKIT_MEDIA_DECODER": "/nowhere/decoder"})
        self.assertEqual(result.returncode, 4)
        self.assertIn("/nowhere/decoder", result.stderr)


if __name__ == "__main__":
    unittest.main()
