"""`export`: a bundle's programs as ML Packages."""
import json
import os
import pathlib
import tempfile
import unittest

from harness import MICRO, CommandTest

PROGRAMS = ["run-00-02", *(f"attention-03@{context}" for context in (1024, 2048, 4096, 8192, 16384)), "tail"]
VISION = ["vision-00", "vision-01"]
DATA = pathlib.Path("Data", "com.apple.CoreML")


def contents(folder):
    """Every file's bytes by relative path."""
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


class Export(CommandTest):
    def setUp(self):
        super().setUp()
        self.bundle = self.folder / "bundle"
        self.out = self.folder / "out"
        self.succeed("convert", MICRO, "-o", self.bundle, "--min-weights", 1024, "--quiet")

    def export(self, out=None):
        return self.succeed_json("export", self.bundle, "--format", "coreml", "-o", out or self.out, "--json")

    def refuse(self, code, *contains, out=None):
        self.fail_with(code, "export", self.bundle, "-o", out or self.out, contains=contains)
        self.assertFalse((self.folder / "out.partial").exists())

    def change_manifest(self, change):
        path = self.bundle / "manifest.json"
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest))

    def test_writes_a_package_for_each_program(self):
        summary = self.export()
        self.assertEqual([package["program"] for package in summary["packages"]], PROGRAMS + VISION)
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         sorted(f"{name}.mlpackage" for name in PROGRAMS + VISION))
        for package in summary["packages"]:
            folder = self.out / package["file"]
            self.assertEqual(list(contents(folder)),
                             [str(DATA / "model.mlmodel"), str(DATA / "weights" / "weight.bin"), "Manifest.json"])
            self.assertEqual(package["model_bytes"], (folder / DATA / "model.mlmodel").stat().st_size)
            weights = folder / DATA / "weights" / "weight.bin"
            if package["program"] in VISION:
                self.assertEqual((package["weights"], package["weight_bytes"]), ("copied", weights.stat().st_size))
                self.assertEqual(weights.stat().st_nlink, 1)
                continue
            blob = self.bundle / "programs" / "text" / (package["program"].split("@")[0] + ".bin")
            self.assertTrue(weights.samefile(blob))
            self.assertEqual((package["weights"], package["weight_bytes"]), ("linked", blob.stat().st_size))
            manifest = json.loads((folder / "Manifest.json").read_text())
            for item in manifest["itemInfoEntries"].values():
                self.assertTrue((folder / "Data" / item["path"]).exists(), item)
        self.assertEqual(summary["model_bytes"], sum(p["model_bytes"] for p in summary["packages"]))
        self.succeed("verify", self.bundle, "--quiet")

    def test_writes_no_vision_for_a_bundle_without(self):
        bundle = self.folder / "text"
        self.succeed("convert", MICRO, "-o", bundle, "--min-weights", 1024, "--quiet", "--text-only")
        self.succeed("export", bundle, "-o", self.out, "--quiet")
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         sorted(f"{name}.mlpackage" for name in PROGRAMS))

    def test_gives_the_same_bytes_again(self):
        self.export()
        self.export(self.folder / "again")
        self.assertEqual(contents(self.out), contents(self.folder / "again"))

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK)
                         and os.stat("/dev/shm").st_dev != os.stat(tempfile.gettempdir()).st_dev,
                         "needs a second file system")
    def test_copies_to_another_file_system_once(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
            summary = self.export(pathlib.Path(name, "out"))
            self.assertEqual([package["weights"] for package in summary["packages"]],
                             ["copied", "copied", "linked", "linked", "linked", "linked", "copied",
                              "copied", "copied"])
            copied = contents(pathlib.Path(name, "out"))
        self.export()
        self.assertEqual(copied, contents(self.out))

    def test_takes_an_empty_directory_and_says_what_it_did(self):
        self.out.mkdir()
        result = self.succeed("export", self.bundle, "-o", f"{self.out}/")
        self.assertIn("9 ML Packages", result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn("hard link", self.succeed("export", "--help").stdout)

    def test_leaves_what_is_there_alone(self):
        self.out.mkdir()
        (self.out / "mine.txt").write_text("mine")
        self.refuse(2, "out: already exists", "an empty one")
        self.assertEqual([path.name for path in self.out.iterdir()], ["mine.txt"])
        (self.folder / "x.partial").mkdir()
        self.refuse(2, "x.partial: already exists", out=self.folder / "x")
        self.refuse(2, "lies in the bundle", out=self.bundle / "coreml")
        self.succeed("verify", self.bundle, "--quiet")
        self.fail_with(2, "export", self.bundle, "-o", self.folder / "y", "--format", "onnx", contains=["--format"])

    def test_refuses_what_is_no_bundle_with_programs(self):
        self.fail_with(3, "export", self.folder / "absent", "-o", self.out, contains=["absent", "a bundle"])
        self.fail_with(3, "export", MICRO, "-o", self.out, contains=["manifest.json", "clefkit convert"])
        self.change_manifest(lambda manifest: manifest.update(programs=[]))
        self.refuse(3, "manifest.json: the bundle has no programs", "converting")

    def test_refuses_programs_whose_files_are_wrong(self):
        text = self.bundle / "programs" / "text" / "tail.mil"
        blob = self.bundle / "programs" / "text" / "tail.bin"
        good = text.read_text()
        text.write_text(good.replace("mul(", "mul[", 1))
        self.refuse(3, "tail.mil:", 'expected "("')
        text.write_text(good.replace("= mul(", "= mux(", 1))
        self.refuse(3, "tail.mil", "mux")
        text.unlink()
        self.refuse(3, "tail.mil", "not there")
        text.write_text(good)
        data = blob.read_bytes()
        blob.write_bytes(data[:200])
        self.refuse(3, "tail.bin")
        blob.unlink()
        self.refuse(3, "tail.bin", "not there")
        self.assertFalse(self.out.exists())
        blob.write_bytes(data)
        self.export()

    def test_refuses_names_that_are_no_file_names(self):
        for name in ("../tail", "a/b", "", ".."):
            self.change_manifest(lambda manifest: manifest["programs"][0].update(name=name))
            self.refuse(3, "manifest.json", "a program is called", "the name of a file")
        self.change_manifest(lambda manifest: manifest["programs"][0].update(name="tail"))
        self.refuse(3, "two programs are called tail")

    def test_says_where_it_cannot_write(self):
        self.fail_with(4, "export", self.bundle, "-o", "/proc/clefkit/out", contains=["/proc/clefkit: cannot create"])
