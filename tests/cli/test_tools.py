"""`encode`, `tokenize`, `trace`, `synth`, and models that are not right."""
import json
import os
import shutil
import struct
import unittest

from harness import GOLDEN, MICRO, CommandTest, clefkit

TICKET = json.loads((GOLDEN / "cases" / "micro" / "ticket.json").read_text())


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return header, data[8 + size:]


class Commands(CommandTest):
    def test_names_a_command_that_does_not_exist(self):
        self.fail_with(2, "aks", "--state", "x", contains=['no command "aks"'])


class Encode(CommandTest):
    def test_equals_the_golden_record(self):
        got = self.succeed_json("encode", "-m", MICRO, "--json", "--request",
                                self.write("r.json", TICKET["request"]))
        self.assertEqual(got["input_ids"], TICKET["encode"]["input_ids"])
        self.assertEqual(got["questions"], TICKET["encode"]["questions"])

    def test_needs_no_weights(self):
        for name in ("config.json", "joint_head_config.json", "tokenizer.json",
                     "tokenizer_config.json", "processor_config.json"):
            shutil.copy(MICRO / name, self.folder / name)
        out = self.succeed("encode", "-m", self.folder, "--state", "hello", "--noul", "q=Is it?").stdout
        self.assertIn("Is it?", out)


class Tokenize(CommandTest):
    def test_goes_there_and_back(self):
        text = "Café \n\n naïve <|im_end|> 123 \U0001f600"
        ids = self.succeed("tokenize", "-m", MICRO, stdin=text).stdout
        self.assertEqual(self.succeed("tokenize", "-m", MICRO, "--decode", stdin=ids).stdout, text)

    def test_works_line_by_line(self):
        lines = self.succeed("tokenize", "-m", MICRO, "--jsonl", stdin='"a"\n"b c"\n""\n').stdout
        ids = [json.loads(line) for line in lines.splitlines()]
        self.assertEqual(len(ids), 3)
        self.assertEqual(ids[2], [])
        back = self.succeed("tokenize", "-m", MICRO, "--jsonl", "--decode", stdin=lines).stdout
        self.assertEqual(back, '"a"\n"b c"\n""\n')

    def test_refuses_what_is_no_id(self):
        self.fail_with(2, "tokenize", "-m", MICRO, "--decode", stdin="[99999999]", contains=["99999999"])
        self.fail_with(2, "tokenize", "-m", MICRO, "--decode", stdin="{}", contains=["array"])
        self.fail_with(2, "tokenize", "-m", MICRO, "--jsonl", stdin='"a"\n5\n', contains=["line 2"])
        self.fail_with(2, "tokenize", "-m", MICRO, stdin=b"\xff", contains=["UTF-8"])


class Trace(CommandTest):
    def test_writes_the_named_tensors(self):
        out = self.folder / "t.safetensors"
        self.succeed("trace", "-m", MICRO, "--request", self.write("r.json", TICKET["request"]), "-o", out)
        header, _ = read_safetensors(out)
        tokens = len(TICKET["encode"]["input_ids"])
        self.assertEqual(header["input_ids"]["shape"], [tokens])
        self.assertEqual(header["input_ids"]["dtype"], "I64")
        self.assertEqual(header["position_ids"]["shape"], [3, tokens])
        self.assertEqual(header["layers.3.output"]["shape"], [tokens, 64])
        for name in ("embeddings", "final_norm", "head.memory", "head.evidence", "head.fields",
                     "head.logits", "head.probabilities"):
            self.assertEqual(header[name]["dtype"], "F32")

    def test_puts_no_file_in_the_place_of_a_device_or_a_link(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.fail_with(2, "trace", "-m", MICRO, "--state", "x", "--noul", "q=?", "-o", pipe,
                       contains=["not a regular file"])
        self.assertTrue(pipe.is_fifo())
        link, target = self.folder / "link", self.folder / "target"
        link.symlink_to(target)
        self.succeed("trace", "-m", MICRO, "--state", "x", "--noul", "q=?", "-o", link)
        self.assertTrue(link.is_symlink() and target.is_file())

    def test_only_selects_by_prefix(self):
        out = self.folder / "t.safetensors"
        self.succeed("trace", "-m", MICRO, "--state", "x", "--noul", "q=?", "-o", out, "--only", "head.")
        header, _ = read_safetensors(out)
        self.assertTrue(header)
        self.assertTrue(all(name.startswith("head.") for name in header))


class Synth(CommandTest):
    def test_writes_the_same_model_for_the_same_seed(self):
        for name, seed in (("a", 5), ("b", 5), ("c", 6)):
            self.succeed("synth", self.folder / name, "--preset", "tiny", "--seed", seed, "--quiet")
        files = sorted(path.name for path in (self.folder / "a").iterdir())
        for name in files:
            self.assertEqual((self.folder / "a" / name).read_bytes(),
                             (self.folder / "b" / name).read_bytes(), name)
        self.assertNotEqual((self.folder / "a" / "joint_head.safetensors").read_bytes(),
                            (self.folder / "c" / "joint_head.safetensors").read_bytes())

    def test_answers_differ_between_states(self):
        model = self.folder / "m"
        self.succeed("synth", model, "--preset", "nano", "--seed", 1, "--quiet")
        answers = set()
        for state in ("My card was charged twice.", "The app crashes.", "Thank you!", "1234"):
            body = self.succeed_json("ask", "-m", model, "--json", "--state", state, "--noul", "q=Is it?",
                                     "--choice", "c=a,b,c")
            answers.add(round(body["answers"]["q"]["noul"], 3))
        self.assertGreater(len(answers), 1)

    def test_refuses_an_existing_directory_and_no_size(self):
        self.write("a-file", "precious")
        self.fail_with(2, "synth", self.folder, "--preset", "tiny", contains=[str(self.folder)])
        self.fail_with(2, "synth", self.folder / "x")
        self.fail_with(2, "synth", self.folder / "x", "--preset", "huge")


class BadModels(CommandTest):
    """Each defect is exit code 3 and one sentence that names the place."""

    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        shutil.copytree(MICRO, self.model)

    def edit_header(self, name, change):
        path = self.model / name
        path.chmod(0o644)
        data = path.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        change(header)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size:])

    def refuse(self, *contains):
        return self.fail_with(3, "ask", "-m", self.model, "--state", "x", "--noul", "q=?",
                              contains=contains)

    def test_truncated_weights(self):
        path = self.model / "model.safetensors"
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-10])
        self.refuse("model.safetensors")

    def test_a_missing_tensor(self):
        def change(header):
            header["model.language_model.layers.1.mlp.extra.weight"] = header.pop(
                "model.language_model.layers.1.mlp.up_proj.weight")
        self.edit_header("model.safetensors", change)
        self.refuse("layers.1.mlp")

    def test_a_wrong_shape(self):
        def change(header):
            header["model.language_model.layers.0.mlp.up_proj.weight"]["shape"].reverse()
        self.edit_header("model.safetensors", change)
        self.refuse("layers.0.mlp.up_proj.weight")

    def test_a_wrong_dtype(self):
        def change(header):
            header["model.language_model.layers.0.mlp.up_proj.weight"]["dtype"] = "F16"
        self.edit_header("model.safetensors", change)
        self.refuse("layers.0.mlp.up_proj.weight", "F16", "BF16")

    def test_weights_that_are_not_numbers(self):
        header, _ = read_safetensors(self.model / "model.safetensors")
        path = self.model / "model.safetensors"
        path.chmod(0o644)
        data = bytearray(path.read_bytes())
        start = 8 + struct.unpack("<Q", data[:8])[0]
        name = "model.language_model.layers.2.mlp.down_proj.weight"
        at = start + header[name]["data_offsets"][0]
        data[at:at + 2] = b"\xc0\x7f"
        path.write_bytes(bytes(data))
        self.refuse(name)

    def test_a_missing_file(self):
        (self.model / "joint_head.safetensors").unlink()
        self.refuse("joint_head.safetensors")


if __name__ == "__main__":
    unittest.main()
