"""`clefkit doctor`: facts about the machine, the self-test on a simulator, the report."""
import json
import os
import unittest

from harness import MICRO, CommandTest


class Doctor(CommandTest):
    def setUp(self):
        super().setUp()
        self.report = self.folder / "report.json"
        # What a Mac would remember of its Neural Engine.
        os.environ["CLEFKIT_STATE_DIRECTORY"] = str(self.folder / "state")

    def test_says_what_there_is(self):
        body = self.succeed_json("doctor", "--json", "--report", self.report)
        self.assertEqual(json.loads(self.report.read_text()), body)
        backends = {entry["name"]: entry for entry in body["backends"]}
        self.assertTrue(backends["cpu"]["available"])
        self.assertTrue(body["media"]["available"])
        if not backends["ane"]["available"]:
            self.assertNotEqual(backends["ane"]["problem"], "")
            self.assertNotIn("self_test", body)
        self.assertNotIn(os.path.expanduser("~") + "/", self.report.read_text())

    def test_tests_a_simulator_without_a_model(self):
        body = self.succeed_json("doctor", "--backend", "simulator:m5", "--json", "--report", "")
        test = body["self_test"]
        self.assertTrue(test["passed"])
        self.assertEqual(test["device"], "simulator:m5")
        self.assertGreater(len(test["probes"]), 20)
        self.assertIsNone(test["parity"])

    def test_says_what_auto_takes_and_why(self):
        out = self.succeed("doctor", "-m", MICRO, "--report", "").stdout
        self.assertIn("for micro, --backend auto takes", out)

    def test_refuses_what_it_cannot_do(self):
        self.fail_with(2, "doctor", "--backend", "cpu", contains=["--backend"])
        self.fail_with(3, "doctor", "-m", self.folder / "none", "--report", self.report,
                       contains=["none"])
        self.assertFalse(self.report.exists())
        self.fail_with(4, "doctor", "--report", self.folder / "no" / "report.json",
                       contains=["report.json"])

    def test_the_engine_is_asked_for_by_name(self):
        facts = self.succeed_json("doctor", "--json", "--report", "")["backends"][1]
        if facts["available"]:
            self.skipTest("this machine has one")
        self.fail_with(4, "ask", "-m", MICRO, "--backend", "ane", "--state", "x", "--noul", "q=Is it?",
                       contains=[facts["problem"]])


if __name__ == "__main__":
    unittest.main()
