"""`convert`, `inspect`, `verify`, `bench`, and asking from a bundle."""
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

from harness import CLEFKIT, GOLDEN, MICRO, TIED, CommandTest, clefkit

REQUESTS = [json.loads((GOLDEN / "cases" / "micro" / f"{name}.json").read_text())
            for name in ("ticket", "json_state", "single_option", "many_options")]


def contents(folder):
    """Every file's SHA-256 by relative path."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def largest_difference(answers, golden):
    largest = 0.0
    for question, expected in golden.items():
        answer = answers[question]
        got = ({"true": answer["noul"], "false": 1 - answer["noul"]} if answer["type"] == "noul"
               else answer["probabilities"])
        largest = max([largest] + [abs(got[option] - p) for option, p in expected["probabilities"].items()])
    return largest


class BundleTest(CommandTest):
    def convert(self, name="bundle", checkpoint=MICRO, *flags):
        out = self.folder / name
        self.succeed("convert", checkpoint, "-o", out, "--min-weights", 1024, "--quiet", *flags)
        return out

    def requests_file(self):
        return self.write("requests.jsonl",
                          "".join(json.dumps(case["request"]) + "\n" for case in REQUESTS))


class Convert(BundleTest):
    def test_writes_what_the_specification_lists(self):
        bundle = self.convert()
        files = contents(bundle)
        for name in ("config.json", "joint_head_config.json", "processor_config.json",
                     "tokenizer.json", "tokenizer_config.json"):
            self.assertEqual((bundle / name).read_bytes(), (MICRO / name).read_bytes())
        for name in ("NOTICE", "manifest.json", "tensors/embeddings.safetensors",
                     "tensors/decision_head.safetensors", "tensors/vision.safetensors",
                     "programs/text/run-00-02.bin", "programs/text/attention-03.bin",
                     "programs/text/tail.bin"):
            self.assertIn(name, files)
        manifest = json.loads((bundle / "manifest.json").read_text())
        self.assertEqual(manifest["format"], "clefkit-bundle")
        self.assertEqual({entry["path"]: entry["sha256"] for entry in manifest["files"]},
                         {name: digest for name, digest in files.items() if name != "manifest.json"})
        source = {entry["path"]: entry["sha256"] for entry in manifest["source"]["files"]}
        self.assertEqual(source["model.safetensors"],
                         hashlib.sha256((MICRO / "model.safetensors").read_bytes()).hexdigest())
        self.assertGreater(len(manifest["quantization"]["tensors"]), 10)

    def test_writes_the_planned_programs(self):
        # A run of three layers, an attention layer in five contexts, the tail.
        for plan, count in (("grouped", 1 + 5 + 1), ("split", 3 + 5 + 1)):
            bundle = self.convert(plan, MICRO, "--plan", plan)
            programs = json.loads((bundle / "manifest.json").read_text())["programs"]
            self.assertEqual(len(programs), count)
            self.assertEqual(len({program["name"] for program in programs}), count)
            self.assertEqual(self.succeed_json("inspect", "--json", bundle)["bundle"]["text_programs"], count)
            for program in programs:
                text = (bundle / program["mil"]).read_text()
                for port in program["inputs"]:
                    shape = ", ".join(map(str, port["shape"]))
                    self.assertIn(f"tensor<fp16, [{shape}]> {port['name']}", text)
            attention = [program for program in programs if program["kind"] == "attention"]
            self.assertEqual([program["context"] for program in attention[:5]], [1024, 2048, 4096, 8192, 16384])
            self.assertEqual({program["weights"] for program in attention[:5]},
                             {"programs/text/attention-03.bin"})

    def test_verify_checks_what_programs_say(self):
        bundle = self.convert()
        manifest = json.loads((bundle / "manifest.json").read_text())
        tail = next(program for program in manifest["programs"] if program["kind"] == "tail")

        def problem():
            (bundle / "manifest.json").write_text(json.dumps(manifest))
            return clefkit("verify", bundle, "--quiet").stdout

        # A text whose checksum is right and whose sense is not.
        path = bundle / tail["mil"]
        text = path.read_text()
        path.write_text(text.replace("mul(x = ", "mul(z = ", 1))
        record = next(entry for entry in manifest["files"] if entry["path"] == tail["mil"])
        record["bytes"] = path.stat().st_size
        record["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        self.assertIn("mul", problem())
        path.write_text(text)
        record["bytes"] = path.stat().st_size
        record["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        tail["outputs"][0]["name"] = "y_out"
        self.assertIn("other inputs or outputs", problem())

    def test_is_the_same_for_every_number_of_threads(self):
        one = self.convert("one", MICRO, "--threads", 1, "--palette", "grid8")
        two = self.convert("two", MICRO, "--threads", 2, "--palette", "grid8")
        self.assertEqual(contents(one), contents(two))
        self.assertIn("tensors/palette_scales.safetensors", contents(one))

    def test_answers_stay_near_the_checkpoints(self):
        for palette, bound in (("optimal", 0.06), ("original", 0.08), ("grid8", 0.06), ("fast", 0.06)):
            bundle = self.convert(palette, MICRO, "--palette", palette)
            for case in REQUESTS:
                body = self.succeed_json("ask", "-m", bundle, "--json", "--request",
                                         self.write("r.json", case["request"]))
                self.assertLess(largest_difference(body["answers"], case["answers"]), bound, palette)

    def test_precisions_agree(self):
        bundle = self.convert("bundle", MICRO, "--palette", "grid8")
        for precision, bound in (("high", 3e-3), ("fast", 3e-2)):
            facts = self.succeed_json("verify", "--json", bundle, "--precision", precision,
                                      "--against-precision", "exact", "--requests", self.requests_file())
            self.assertGreater(facts["drift"]["largest"], 0)
            self.assertLess(facts["drift"]["largest"], bound)

    def test_offers_fast_only_where_it_was_measured(self):
        bundle = self.convert("bundle", MICRO, "--palette", "grid8")
        ask = ("ask", "-m", bundle, "--json", "--state", "x", "--noul", "q=?", "--precision", "fast")
        self.fail_measurement(bundle)
        self.assertIn("--accept-fast", json.loads(clefkit(*ask).stdout)["error"]["message"])
        self.assertEqual(clefkit(*ask).returncode, 4)
        # As `verify` would have written it.
        record = {"manifest_sha256": contents(bundle)["manifest.json"], "questions": 20, "mean_drift": 0.003,
                  "largest_drift": 0.1, "changed_beyond_margin": 0}
        (bundle / "fast-precision.json").write_text(json.dumps(record))
        self.succeed(*ask)
        self.succeed("verify", bundle, "--quiet")
        (bundle / "fast-precision.json").write_text(json.dumps({**record, "mean_drift": 0.004}))
        self.assertEqual(clefkit(*ask).returncode, 4)
        (bundle / "fast-precision.json").write_text("{")
        self.assertEqual(clefkit(*ask).returncode, 3)
        (bundle / "fast-precision.json").unlink()
        self.succeed("bench", "-m", bundle, "--precision", "fast", "--tokens", "256", "--repeat", 1, "--quiet")

    def fail_measurement(self, bundle):
        """Too few questions to allow anything, and what was allowed before is taken back."""
        record = bundle / "fast-precision.json"
        record.write_text(json.dumps({"manifest_sha256": "of another", "questions": 20, "mean_drift": 0,
                                      "largest_drift": 0, "changed_beyond_margin": 0}))
        flags = ("--precision", "fast", "--against-precision", "high", "--accept-fast", "--quiet")
        one = self.write("one.jsonl", json.dumps(REQUESTS[0]["request"]) + "\n")
        result = clefkit("verify", bundle, *flags, "--requests", one)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("not offered", result.stdout)
        self.assertFalse(record.exists())
        self.fail_with(2, "verify", bundle, *flags, contains=["--accept-fast"])
        self.fail_with(2, "verify", MICRO, *flags, "--requests", one, contains=["--accept-fast"])

    def test_offers_fast_after_a_measurement_that_allows_it(self):
        # A palette of zeros makes every precision the same.
        checkpoint = self.folder / "zeros"
        shutil.copytree(MICRO, checkpoint)
        data = bytearray((checkpoint / "model.safetensors").read_bytes())
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + size])
        for name, tensor in header.items():
            if "proj" in name and "language_model" in name:
                begin, end = (8 + size + at for at in tensor["data_offsets"])
                data[begin:end] = bytes(end - begin)
        (checkpoint / "model.safetensors").write_bytes(bytes(data))
        bundle = self.convert("bundle", checkpoint, "--palette", "grid8")
        many = self.write("many.jsonl", "".join(json.dumps(
            {"state": f"Ticket {i}.", "questions": {"q": {"type": "noul"}}}) + "\n" for i in range(20)))
        facts = self.succeed_json("verify", "--json", bundle, "--precision", "fast", "--against-precision",
                                  "high", "--accept-fast", "--requests", many)
        self.assertTrue(facts["fast_accepted"])
        self.succeed("ask", "-m", bundle, "--state", "x", "--noul", "q=?", "--precision", "fast")

    def test_tied_embeddings_and_split_plan(self):
        bundle = self.convert("bundle", TIED, "--plan", "split", "--palette", "fast")
        self.assertIn("programs/text/run-00-00.bin", contents(bundle))
        self.succeed("ask", "-m", bundle, "--state", "x", "--noul", "q=?")

    def test_text_only_leaves_vision_out_and_refuses_pictures(self):
        bundle = self.convert("bundle", MICRO, "--text-only")
        self.assertNotIn("tensors/vision.safetensors", contents(bundle))
        request = {"state": "x", "questions": {"q": {"type": "noul"}}, "images": ["file:x.png"]}
        self.fail_with(4, "ask", "-m", bundle, "--request", self.write("r.json", request),
                       contains=["images"])

    def test_survives_being_killed_at_any_moment(self):
        whole = contents(self.convert("whole", TIED, "--palette", "grid8"))
        out = self.folder / "killed"
        generator = random.Random(1)
        command = [CLEFKIT, "convert", str(TIED), "-o", str(out), "--min-weights", "1024", "--quiet",
                   "--palette", "grid8"]
        start = time.monotonic()
        subprocess.run(command[:4] + [str(self.folder / "timed")] + command[5:], check=True)
        duration = time.monotonic() - start
        for _ in range(12):
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            time.sleep(generator.uniform(0, duration))
            process.kill()
            process.wait()
            if out.exists():
                break
        if not out.exists():
            self.succeed(*command[1:])
        self.assertEqual(contents(out), whole)
        self.assertFalse(pathlib.Path(f"{out}.partial").exists())

    def test_interrupt_leaves_a_resumable_conversion(self):
        out = self.folder / "out"
        command = [CLEFKIT, "convert", str(TIED), "-o", str(out), "--min-weights", "1024"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        partial = pathlib.Path(f"{out}.partial")
        while process.poll() is None and not partial.exists() and not out.exists():
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        self.assertIn(process.wait(), (0, 130))
        if not out.exists():
            self.succeed(*command[1:])
        self.succeed("verify", out)

    @unittest.skipUnless(os.geteuid() == 0, "mounting a small file system needs root")
    def test_a_full_disk_is_one_error_and_no_bundle(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)],
                                 capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("cannot mount a small file system here")
        self.addCleanup(subprocess.run, ["umount", str(disk)])
        self.fail_with(4, "convert", MICRO, "-o", disk / "out", "--min-weights", 1024, "--quiet",
                       contains=["No space left"])
        self.assertFalse((disk / "out").exists())

    def test_refuses_what_would_lose_something(self):
        bundle = self.convert()
        self.fail_with(2, "convert", MICRO, "-o", bundle, contains=["already exists"])
        self.fail_with(2, "convert", MICRO, "-o", self.folder / "x", "--program-budget", 3,
                       contains=["programs"])
        self.fail_with(3, "convert", self.folder / "absent", "-o", self.folder / "x", contains=["absent"])
        out = self.folder / "other"
        partial = pathlib.Path(f"{out}.partial")
        partial.mkdir()
        pathlib.Path(f"{out}.partial.journal").write_text('{"fingerprint":"another"}\n')
        self.fail_with(2, "convert", MICRO, "-o", out, contains=["other options"])

    def test_every_file_that_is_read_must_be_in_the_list_of_files(self):
        bundle = self.convert()
        manifest = json.loads((bundle / "manifest.json").read_text())
        listed = manifest["files"]
        weights = manifest["weights"][0]["blob"]
        for path in ("config.json", "tokenizer.json", "tensors/decision_head.safetensors",
                     "tensors/vision.safetensors", weights):
            manifest["files"] = [entry for entry in listed if entry["path"] != path]
            manifest["programs"] = []
            (bundle / "manifest.json").write_text(json.dumps(manifest))
            self.fail_with(3, "ask", "-m", bundle, "--state", "x", "--noul", "q=Is it?",
                           contains=[f"`files` does not list {path}"])
            self.fail_with(3, "verify", bundle, contains=[f"{path}: the manifest does not name"])

    def test_leaves_a_directory_that_is_not_its_own_alone(self):
        mine = self.folder / "x.partial"
        mine.mkdir()
        (mine / "mine.txt").write_text("mine")
        self.fail_with(2, "convert", MICRO, "-o", self.folder / "x", contains=["no unfinished conversion"])
        self.assertEqual([p.name for p in mine.iterdir()], ["mine.txt"])

    def test_takes_a_name_without_a_directory(self):
        result = subprocess.run([CLEFKIT, "convert", MICRO, "-o", "bare", "--min-weights", "1024", "--quiet"],
                                cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.succeed("verify", self.folder / "bare", "--quiet")

    def test_refuses_weights_that_are_not_finite(self):
        checkpoint = self.folder / "nan"
        shutil.copytree(MICRO, checkpoint)
        path = checkpoint / "joint_head.safetensors"
        data = bytearray(path.read_bytes())
        data[-4:] = b"\xc0\x7f\xc0\x7f"
        path.write_bytes(bytes(data))
        # Seen by the calibration, and without it when the weights are copied.
        for flags in ((), ("--calibration", "none")):
            self.fail_with(3, "convert", checkpoint, "-o", self.folder / f"x{len(flags)}", *flags,
                           contains=["element", "expected finite"])

    def test_takes_a_name_with_a_slash_and_refuses_none(self):
        self.succeed("convert", MICRO, "-o", f"{self.folder}/slash/", "--min-weights", 1024, "--quiet")
        self.succeed("verify", self.folder / "slash", "--quiet")
        for name in ("", "/", "."):
            self.fail_with(2, "convert", MICRO, "-o", name, contains=["name of a new bundle"])


class Calibration(BundleTest):
    def scales(self, bundle):
        return json.loads((bundle / "manifest.json").read_text())["scales"]

    def program_texts(self, bundle):
        return "".join(path.read_text() for path in sorted(bundle.glob("programs/text/*.mil")))

    def test_programs_have_the_factors_of_the_manifest(self):
        for name, checkpoint, layers in (("micro", MICRO, 4), ("tied", TIED, 8)):
            bundle = self.convert(name, checkpoint)
            scales = self.scales(bundle)
            self.assertGreater(scales["calibration"]["tokens"], 0)
            self.assertEqual([scale["layer"] for scale in scales["mlp"]], list(range(layers)))
            text = self.program_texts(bundle)
            for scale in scales["mlp"]:
                largest = max(scale["largest_activation"], scale["largest_sum"])
                self.assertLessEqual(scale["factor"] * largest, 4096)
                self.assertTrue(scale["factor"] == 16 or 2 * scale["factor"] * largest > 4096)
                self.assertEqual(f"mlp_{scale['layer']:02}_scaled = mul" in text, scale["factor"] != 1)
            facts = self.succeed_json("inspect", "--json", bundle)
            self.assertEqual(facts["bundle"]["scales"], scales)
            self.assertIn(f"measured on {scales['calibration']['tokens']} tokens",
                          self.succeed("inspect", bundle).stdout)

    def test_none_gives_programs_without_factors(self):
        bundle = self.convert("bundle", MICRO, "--calibration", "none")
        self.assertEqual(self.scales(bundle), {"calibration": None, "mlp": []})
        self.assertFalse(re.search(r"mlp_\d\d_scaled", self.program_texts(bundle)))
        self.succeed("verify", bundle, "--quiet")
        self.assertIn("nothing was measured", self.succeed("inspect", bundle).stdout)

    def test_measures_on_the_users_requests(self):
        requests = self.requests_file()
        bundle = self.convert("bundle", MICRO, "--text-only", "--calibration", requests)
        calibration = self.scales(bundle)["calibration"]
        self.assertEqual(calibration["sha256"], hashlib.sha256(requests.read_bytes()).hexdigest())
        tokens = 0
        for case in REQUESTS:
            request = self.write("r.json", case["request"])
            tokens += len(self.succeed_json("encode", "-m", MICRO, "--json", "--request", request)["input_ids"])
        self.assertEqual(calibration["tokens"], tokens)

    def test_refuses_requests_before_anything_is_written(self):
        out = self.folder / "x"
        bad = self.write("bad.jsonl", json.dumps(REQUESTS[0]["request"]) + "\n{}\n")
        empty = self.write("empty.jsonl", "\n")
        for path, *contains in ((bad, "bad.jsonl line 2"), (empty, "no requests"),
                                (self.folder / "absent.jsonl", "absent.jsonl")):
            self.fail_with(2, "convert", MICRO, "-o", out, "--calibration", path, contains=contains)
            self.assertEqual(list(self.folder.glob("x*")), [])

    def test_another_calibration_is_another_conversion(self):
        out = self.folder / "out"
        process = subprocess.Popen([CLEFKIT, "convert", str(TIED), "-o", str(out), "--min-weights", "1024",
                                    "--palette", "grid8", "--quiet"], stderr=subprocess.DEVNULL)
        journal = pathlib.Path(f"{out}.partial.journal")
        while process.poll() is None and not (journal.exists() and '"calibration"' in journal.read_text()):
            time.sleep(0.002)
        process.kill()
        process.wait()
        if out.exists():
            self.skipTest("was converted before it could be stopped")
        flags = ("convert", TIED, "-o", out, "--min-weights", 1024, "--palette", "grid8", "--quiet")
        self.fail_with(2, *flags, "--calibration", "none", contains=["other options"])
        # Going on, it keeps what was measured.
        whole = self.convert("whole", TIED, "--palette", "grid8")
        self.assertIn('"calibration"', journal.read_text())
        self.succeed(*flags)
        self.assertEqual(contents(out), contents(whole))

    def test_verify_compares_programs_with_the_manifest(self):
        bundle = self.convert()
        path = bundle / "manifest.json"
        manifest = json.loads(path.read_text())
        scale = manifest["scales"]["mlp"][1]
        self.assertEqual(scale["factor"], 16)
        scale["factor"] = 8
        path.write_text(json.dumps(manifest))
        result = clefkit("verify", bundle, "--quiet")
        self.assertEqual(result.returncode, 3)
        self.assertIn("the MLP of layer 1 is scaled by 16, expected 8", result.stdout)
        del manifest["scales"]
        path.write_text(json.dumps(manifest))
        self.assertIn("the MLP of layer 0 is scaled by 16, expected 1",
                      clefkit("verify", bundle, "--quiet").stdout)

    def test_programs_made_at_run_time_have_the_factors(self):
        def ask(bundle):
            return self.succeed_json("ask", "-m", bundle, "--json", "--backend", "simulator:h15g",
                                     "--state", "The site is down", "--noul", "q=Is it urgent?")["answers"]

        bundle = self.convert()
        answers = ask(bundle)
        path = bundle / "manifest.json"
        manifest = json.loads(path.read_text())
        manifest["programs"] = []
        path.write_text(json.dumps(manifest))
        self.assertEqual(ask(bundle), answers)
        del manifest["scales"]
        path.write_text(json.dumps(manifest))
        self.assertNotEqual(ask(bundle), answers)


class Inspect(BundleTest):
    def test_tells_what_is_there(self):
        facts = self.succeed_json("inspect", "--json", MICRO)
        self.assertEqual(facts["kind"], "checkpoint")
        self.assertEqual(facts["architecture"]["hidden_size"], 64)
        self.assertIsNone(facts["bundle"])
        bundle = self.convert()
        facts = self.succeed_json("inspect", "--json", bundle)
        self.assertEqual(facts["kind"], "bundle")
        self.assertEqual(facts["bundle"]["palette"], "optimal")
        self.assertTrue(facts["bundle"]["worst_tensors"])
        self.assertIn("lut6", {row["stored"] for row in facts["classes"]})
        self.assertIn("largest errors", self.succeed("inspect", bundle).stdout)


class Verify(BundleTest):
    def test_passes_a_good_bundle(self):
        bundle = self.convert()
        self.assertIn("passed", self.succeed("verify", bundle).stdout)
        facts = self.succeed_json("verify", "--json", bundle, "--against", MICRO, "--requests",
                                  self.requests_file(), "--max-drift", 0.06, "--max-mean-drift", 0.02)
        self.assertTrue(facts["passed"])
        self.assertEqual(facts["drift"]["requests"], len(REQUESTS))
        self.assertGreater(facts["drift"]["largest"], 0)
        errors = {tensor["name"]: tensor for tensor in facts["tensors"]}
        self.assertEqual(errors["lm_head.weight"]["relative_rmse"], 0)
        palettized = [t for t in facts["tensors"] if t["stored"] == "lut6"]
        manifest = json.loads((bundle / "manifest.json").read_text())
        recorded = {t["name"]: t["relative_rmse"] for t in manifest["quantization"]["tensors"]}
        for tensor in palettized:
            self.assertAlmostEqual(tensor["relative_rmse"], recorded[tensor["name"]], places=9)

    def test_ends_with_one_past_a_bound(self):
        bundle = self.convert()
        result = clefkit("verify", bundle, "--against", MICRO, "--requests", self.requests_file(),
                         "--max-drift", 1e-9)
        self.assertEqual(result.returncode, 1)
        self.assertIn("FAILED", result.stdout)

    def test_compares_precisions_of_one_bundle(self):
        bundle = self.convert()
        facts = self.succeed_json("verify", "--json", bundle, "--precision", "high",
                                  "--against-precision", "exact", "--requests", self.requests_file(),
                                  "--max-drift", 3e-3)
        self.assertGreater(facts["drift"]["largest"], 0)

    def test_names_a_damaged_file(self):
        bundle = self.convert()
        path = bundle / "programs" / "text" / "tail.bin"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))
        self.fail_with(3, "verify", bundle, contains=["tail.bin", "SHA-256"])
        path.write_bytes(bytes(data[:-64]))
        self.fail_with(3, "verify", bundle, contains=["tail.bin", "bytes"])
        self.fail_with(3, "ask", "-m", bundle, "--state", "x", "--noul", "q=?", contains=["tail.bin"])
        path.unlink()
        self.fail_with(3, "ask", "-m", bundle, "--state", "x", "--noul", "q=?", contains=["tail.bin"])

    def test_names_the_request_that_cannot_be_answered(self):
        path = self.write("r.jsonl", "\n".join(json.dumps(request) for request in (
            REQUESTS[0]["request"], {**REQUESTS[0]["request"], "images": ["file:absent.png"]})))
        self.fail_with(2, "verify", MICRO, "--against", MICRO, "--requests", path,
                       contains=["r.jsonl line 2: images[0]", "absent.png"])

    def test_a_bound_is_a_number(self):
        bundle = self.convert()
        self.fail_with(2, "verify", bundle, "--against", MICRO, "--requests", self.requests_file(),
                       "--max-drift", "nan", contains=["--max-drift"])

    def test_names_what_does_not_belong(self):
        bundle = self.convert()
        (bundle / "extra.txt").write_text("x")
        self.fail_with(3, "verify", bundle, contains=["extra.txt"])


class BadManifests(BundleTest):
    def refuse(self, change, *contains):
        bundle = self.folder / "bundle"
        if not bundle.exists():
            self.convert()
        path = bundle / "manifest.json"
        original = path.read_text()
        manifest = json.loads(original)
        change(manifest)
        path.write_text(json.dumps(manifest))
        self.fail_with(3, "ask", "-m", bundle, "--state", "x", "--noul", "q=?", contains=contains)
        path.write_text(original)

    def test_each_defect_is_one_sentence(self):
        self.refuse(lambda m: m.update(format_version=2), "version 2", "version 1")
        self.refuse(lambda m: m["files"][0].update(path="../outside"), "leaves the bundle")
        self.refuse(lambda m: m["files"][0].update(path="/etc/passwd"), "leaves the bundle")
        self.refuse(lambda m: m["files"][0].update(path="absent.bin"), "absent.bin")
        self.refuse(lambda m: m["weights"].pop(), "expected an entry of `weights`")
        self.refuse(lambda m: (m["weights"].pop(), m["quantization"]["tensors"].pop()), "missing")
        self.refuse(lambda m: m["quantization"].update(bits=5), "quantization.bits", "5", "6")
        self.refuse(lambda m: m["quantization"].update(palette="zzz"), "quantization.palette", "zzz")
        self.refuse(lambda m: m["weights"][0].update(offset=65), "65")
        self.refuse(lambda m: m["weights"][0].update(name="nobody"),
                    "layers.0.input_layernorm.weight, expected an entry of `weights`")
        self.refuse(lambda m: (m["weights"][0].update(name="nobody"),
                               next(k for k in m["quantization"]["kept"]
                                    if k["stored"] == "fp16").update(name="nobody")), "nobody")
        self.refuse(lambda m: m["weights"].append(m["weights"][0]), "stands twice")
        self.refuse(lambda m: m["scales"]["mlp"][0].update(factor=3), "scales.mlp[0].factor", "3", "16")
        self.refuse(lambda m: m["scales"]["mlp"][3].update(layer=4), "scales.mlp", "layer 4", "below 4")

        def swap(manifest):
            palettized = next(w for w in manifest["weights"] if w["kind"] == "lut6")
            palettized["offset"], palettized["palette_offset"] = (
                palettized["palette_offset"], palettized["offset"])
        self.refuse(swap, "record")


class Bench(BundleTest):
    def test_measures_lengths_and_stages(self):
        facts = self.succeed_json("bench", "-m", MICRO, "--tokens", "400,500", "--repeat", 2, "--json")
        self.assertEqual([length["tokens"] for length in facts["lengths"]], [400, 500])
        for length in facts["lengths"]:
            self.assertGreater(length["tokens_per_second"], 0)
            self.assertLess(sum(length["stage_seconds"].values()), 2 * length["seconds"])
            for stage in ("embedding", "linear", "delta rule", "attention", "elementwise", "head"):
                self.assertIn(stage, length["stage_seconds"])
        self.assertGreater(facts["memory"]["peak_bytes"], 0)
        self.succeed("bench", "-m", MICRO, "--tokens", "400", "--repeat", 1)


if __name__ == "__main__":
    unittest.main()
