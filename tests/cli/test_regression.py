"""The regression set: the model in the box against what its own training code answers."""
import json
import unittest

from harness import ROOT, CommandTest

SET = ROOT / "eval" / "regression"
BOX = ROOT / "models" / "nano" / "clef-nano"


class Regression(CommandTest):
    def evaluate(self, *flags):
        return self.succeed_json("eval", SET, "-m", BOX, "--against", SET / "reference.jsonl", "--json", *flags)

    def check(self, result):
        self.assertEqual((result["requests"], result["questions"]), (17, 27))
        drift = result["drift"]
        self.assertEqual(drift["agreeing"], 27)
        self.assertLessEqual(drift["largest"], 0.065)
        # Of skills that the model does not list nothing is expected.
        expectations = result["all"]["expectations"]
        self.assertGreaterEqual(expectations["met_by_both"], expectations["count"] - 1)

    def test_bundle_against_the_unquantised_reference(self):
        self.check(self.evaluate())

    def test_programs_on_the_simulator_against_the_same(self):
        self.check(self.evaluate("--backend", "simulator"))

    def test_bundle_holds_what_its_manifest_says(self):
        self.succeed("verify", BOX)

    def test_reports_are_one_page(self):
        report = self.folder / "report.html"
        self.evaluate("--report", report)
        page = report.read_text()
        self.assertIn("<svg", page)
        for outside in ("http:", "https:", "src=", "<script", "<link"):
            self.assertNotIn(outside, page)


if __name__ == "__main__":
    unittest.main()
