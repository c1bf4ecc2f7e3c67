"""`clefkit eval`: sets with expected answers, comparisons, bounds, reports."""
import base64
import json
import re
import unittest

from harness import GOLDEN, MICRO, CommandTest, clefkit

QUESTIONS = {
    "refund": {"type": "noul", "instructions": "Does the customer want money back?"},
    "team": {"type": "choice", "instructions": "Who?", "criteria": {"billing": "Invoices", "sales": None}},
    "anger": {"type": "score", "criteria": ["calm", "annoyed", "angry"]}}
STATES = ["My card was charged twice.", "Hello, is the lamp still for sale?", {"order": 17, "late": True}]
PICTURE = base64.b64decode(  # One red pixel, PNG.
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")


def lines(entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


class EvalTest(CommandTest):
    def answers(self, model=MICRO):
        """What `ask` says of each state."""
        return [self.succeed_json("ask", "-m", model, "--json", "--request",
                                  self.write("one.json", {"state": state, "questions": QUESTIONS}))["answers"]
                for state in STATES]

    @staticmethod
    def chosen(answer):
        if answer["type"] == "noul":
            return answer["noul"] >= 0.5
        best = max(answer["probabilities"], key=answer["probabilities"].get)
        return best if answer["type"] == "choice" else int(best)

    @staticmethod
    def wrong(value):
        """Another answer to the same question."""
        if isinstance(value, bool):
            return not value
        return {"billing": "sales", "sales": "billing", 0: 1, 1: 2, 2: 0}[value]

    def entries(self, answers):
        """A set that expects what the model answers, but for the last refund."""
        entries = [{"name": f"n{i}", "state": state, "questions": QUESTIONS,
                    "expected": {question: self.chosen(answer) for question, answer in answers[i].items()}}
                   for i, state in enumerate(STATES)]
        entries[-1]["expected"]["refund"] = self.wrong(entries[-1]["expected"]["refund"])
        return entries

    def bundle(self):
        out = self.folder / "bundle"
        self.succeed("convert", MICRO, "-o", out, "--min-weights", 1024, "--quiet")
        return out


class Eval(EvalTest):
    def test_counts_what_was_answered_as_expected(self):
        answers = self.answers()
        path = self.write("set.jsonl", "\n \n" + lines(self.entries(answers)))
        facts = self.succeed_json("eval", path, "-m", MICRO, "--json")
        self.assertEqual((facts["requests"], facts["questions"]), (3, 9))
        self.assertEqual(facts["all"]["expectations"], {"count": 9, "met": 8})
        self.assertAlmostEqual(facts["all"]["accuracy"], 8 / 9)
        self.assertAlmostEqual(facts["all"]["chance"], (1 / 2 + 1 / 2 + 1 / 3) / 3)
        self.assertAlmostEqual(facts["types"]["noul"]["accuracy"], 2 / 3)
        yes = [answer["refund"]["noul"] for answer in answers]
        right = [p if entry["expected"]["refund"] else 1 - p
                 for p, entry in zip(yes, self.entries(answers))]
        self.assertAlmostEqual(facts["types"]["noul"]["brier"], sum(2 * (1 - p) ** 2 for p in right) / 3)
        self.assertEqual([group["name"] for group in facts["groups"]], ["refund", "team", "anger"])
        self.assertEqual([(miss["line"], miss["name"], miss["question"]) for miss in facts["missed"]],
                         [(5, "n2", "refund")])  # Two blank lines come first.
        self.assertAlmostEqual(facts["missed"][0]["probability"], right[-1])
        self.assertIsNone(facts["drift"])
        self.assertTrue(facts["passed"])

    def test_prints_tables_for_a_person(self):
        path = self.write("set.jsonl", lines(self.entries(self.answers())))
        out = self.succeed("eval", path, "-m", MICRO).stdout
        for text in ("3 requests with 9 questions", "micro, exact on cpu", "majority", "macro-F1",
                     "expectations: 8 of 9 met", "line 3 (n2), refund: "):
            self.assertIn(text, out)
        self.assertNotIn("\x1b", out)

    def test_takes_a_directory_and_standard_input(self):
        text = lines(self.entries(self.answers()))
        self.write("requests.jsonl", text)
        by_folder = self.succeed_json("eval", self.folder, "-m", MICRO, "--json")
        by_stdin = self.succeed_json("eval", "-", "-m", MICRO, "--json", stdin=text)
        self.assertEqual(by_folder["all"], by_stdin["all"])
        self.fail_with(2, "eval", GOLDEN, "-m", MICRO, contains=["requests.jsonl"])

    def test_reads_media_beside_the_set(self):
        (self.folder / "set" / "media").mkdir(parents=True)
        self.write("set/media/red.png", PICTURE)
        self.write("set/requests.jsonl", lines([{"state": "", "questions": {"q": {"type": "noul"}},
                                                 "images": ["file:media/red.png"], "expected": {"q": True}}]))
        facts = self.succeed_json("eval", self.folder / "set", "-m", MICRO, "--json")
        self.assertEqual(facts["all"]["count"], 1)

    def test_counts_skills_that_are_not_listed_apart(self):
        model = self.folder / "model"
        model.mkdir()
        for file in MICRO.iterdir():
            (model / file.name).symlink_to(file)
        (model / "skills.json").write_text('["routing"]')
        entries = self.entries(self.answers())
        for entry in entries:
            entry["skills"] = {"refund": "refunds", "team": "routing"}
        path = self.write("set.jsonl", lines(entries))
        facts = self.succeed_json("eval", path, "-m", model, "--json")
        self.assertEqual(facts["all"]["expectations"], {"count": 6, "met": 6})
        self.assertEqual(facts["unlisted"], {"count": 3, "met": 2})
        self.assertEqual({group["name"]: group["listed"] for group in facts["groups"]},
                         {"refunds": False, "routing": True, "anger": True})
        self.assertIn("not listed", self.succeed("eval", path, "-m", model).stdout)
        bundle = self.folder / "listing"
        self.succeed("convert", model, "-o", bundle, "--min-weights", 1024, "--quiet")
        self.assertEqual(self.succeed_json("eval", path, "-m", bundle, "--json")["unlisted"]["count"], 3)
        (model / "skills.json").write_text("{}")
        self.fail_with(3, "eval", path, "-m", model, contains=["skills.json", "array"])


class Compared(EvalTest):
    def test_two_precisions_of_one_bundle(self):
        bundle = self.bundle()
        path = self.write("set.jsonl", lines(self.entries(self.answers(bundle))))
        facts = self.succeed_json("eval", path, "-m", bundle, "--against-precision", "exact", "--json",
                                  "--max-drift", 3e-3)
        self.assertEqual(facts["model"], "bundle, high on cpu")
        self.assertEqual(facts["against"], "bundle, exact on cpu")
        self.assertGreater(facts["drift"]["largest"], 0)
        self.assertEqual(facts["drift"]["questions"], 9)
        self.assertEqual(set(facts["all"]["expectations"]), {"count", "met", "met_against", "met_by_both"})

    def test_a_bundle_and_its_checkpoint(self):
        bundle = self.bundle()
        path = self.write("set.jsonl", lines([{"state": state, "questions": QUESTIONS} for state in STATES]))
        facts = self.succeed_json("eval", path, "-m", bundle, "--against", MICRO, "--json")
        by_verify = self.succeed_json("verify", bundle, "--against", MICRO, "--requests", path, "--json")
        self.assertEqual(facts["drift"], by_verify["drift"])
        self.assertEqual(facts["groups"], [])  # Nothing is expected, answers are compared alone.

    def test_recorded_answers(self):
        answers = self.answers()
        path = self.write("set.jsonl", lines(self.entries(answers)))
        recorded = [{"name": f"n{i}", "answers": answer} for i, answer in enumerate(answers)]
        same = self.succeed_json("eval", path, "-m", MICRO, "--json", "--min-agreeing", 1, "--max-drift", 1e-6,
                                 "--against", self.write("same.jsonl", lines(reversed(recorded))))
        self.assertEqual(same["drift"]["agreeing"], 9)
        self.assertEqual(same["all"]["expectations"],
                         {"count": 9, "met": 8, "met_against": 8, "met_by_both": 8})
        refund = recorded[2]["answers"]["refund"]
        moved = 0.25 if refund["noul"] >= 0.5 else 0.75
        difference = abs(refund["noul"] - moved)
        refund["noul"] = moved
        other = self.write("other.jsonl", lines(recorded))
        facts = self.succeed_json("eval", path, "-m", MICRO, "--json", "--against", other)
        self.assertAlmostEqual(facts["drift"]["largest"], difference)
        self.assertEqual(facts["drift"]["agreeing"], 8)
        self.assertEqual(facts["all"]["expectations"],
                         {"count": 9, "met": 8, "met_against": 9, "met_by_both": 8})
        self.assertEqual(facts["drift"]["changed"][0]["request"], 3)
        out = self.succeed("eval", path, "-m", MICRO, "--against", other).stdout
        self.assertIn("8 of 9 met, 9 by what it is compared with, 8 by both", out)
        self.assertIn("8 of 9 chosen answers agree", out)

    def test_bounds_give_exit_code_one(self):
        answers = self.answers()
        path = self.write("set.jsonl", lines(self.entries(answers)))
        answers[0]["refund"]["noul"] = 1 - answers[0]["refund"]["noul"]
        other = self.write("other.jsonl", lines({"name": f"n{i}", "answers": answer}
                                                for i, answer in enumerate(answers)))
        self.succeed("eval", path, "-m", MICRO, "--against", other, "--min-accuracy", 0.88, "--min-agreeing", 0.88)
        for flags in (["--min-accuracy", 0.89], ["--max-drift", 1e-9], ["--max-mean-drift", 1e-9],
                      ["--min-agreeing", 0.95]):
            result = clefkit("eval", path, "-m", MICRO, "--against", other, *flags)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("FAILED: ", result.stdout)
        result = clefkit("eval", path, "-m", MICRO, "--min-accuracy", 1, "--json")
        self.assertEqual(result.returncode, 1)
        facts = json.loads(result.stdout)
        self.assertFalse(facts["passed"])
        self.assertEqual(facts["problems"], ["accuracy 0.8889, expected at least 1"])


class Report(EvalTest):
    def test_is_one_page_that_needs_nothing_else(self):
        entries = self.entries(self.answers())
        entries[0]["name"] = "<script>alert(1)</script>"
        entries[0]["questions"] = {**QUESTIONS, "<b>": {"type": "noul", "instructions": "<img src=x>"}}
        path = self.write("set.jsonl", lines(entries))
        report = self.folder / "report.html"
        self.succeed("eval", path, "-m", MICRO, "--report", report, "--against", MICRO)
        page = report.read_text()
        self.assertTrue(page.startswith("<!doctype html>"))
        for text in ("http:", "https:", "<script", "<img", "<link", "url(", "@import"):
            self.assertNotIn(text, page)
        self.assertIn("&lt;script&gt;alert(1)", page)
        self.assertIn("<circle", page)
        self.assertIn("<b>&lt;b&gt;</b> (noul)", page)
        self.assertIn("10 of 10", page)  # Chosen answers that agree.
        # Every element is closed.
        for tag in ("table", "tr", "td", "svg", "p", "h2", "h3", "div", "span"):
            self.assertEqual(len(re.findall(rf"<{tag}[ >]", page)), page.count(f"</{tag}>"), tag)

    def test_needs_its_directory(self):
        path = self.write("set.jsonl", lines(self.entries(self.answers())))
        self.fail_with(2, "eval", path, "-m", MICRO, "--report", self.folder / "absent" / "r.html",
                       contains=["--report", "absent"])


class Refusals(EvalTest):
    def refused(self, *flags, text=None, contains=()):
        entries = [{"state": "x", "questions": QUESTIONS, "expected": {"refund": True}}]
        path = self.write("set.jsonl", lines(entries) if text is None else text)
        # A model that is not there: nothing is opened before the set is right.
        self.fail_with(2, "eval", path, "-m", self.folder / "absent", *flags, contains=contains)

    def test_are_told_before_a_model_is_opened(self):
        entry = {"state": "x", "questions": QUESTIONS}
        self.refused(text="", contains=["no requests"])
        self.refused(text=lines([entry, {**entry, "expected": {"team": "bill"}}]),
                     contains=["line 2: expected.team: \"bill\", expected one of billing, sales"])
        self.refused(text=lines([entry]), contains=["expected", "--against"])
        self.refused("--max-drift", 1, contains=["--max-drift", "--against"])
        self.refused("--min-accuracy", "nan", contains=["--min-accuracy", "0 to 1"])
        self.refused("--min-accuracy", 95, contains=["--min-accuracy", "0 to 1"])
        self.refused("--against", self.folder / "nowhere", contains=["--against", "nowhere", ".jsonl"])
        self.refused("--against", self.folder / "nowhere.jsonl", contains=["nowhere.jsonl"])
        recorded = self.write("r.jsonl", lines([{"name": "a", "answers": {}}]))
        self.refused("--against", recorded, contains=["line 1: name: missing"])

    def test_a_request_that_cannot_be_answered_is_named(self):
        entry = {"state": "x", "questions": QUESTIONS, "expected": {"refund": True}}
        path = self.write("set.jsonl", lines([entry, {**entry, "name": "long", "state": "word " * 2000}]))
        self.fail_with(2, "eval", path, "-m", MICRO, "--max-tokens", 800,
                       contains=["set.jsonl line 2 (\"long\"): state", "800"])
        self.succeed("eval", path, "-m", MICRO, "--max-tokens", 800, "--truncate")
        path = self.write("set.jsonl", lines([{**entry, "images": ["file:absent.png"]}]))
        self.fail_with(2, "eval", path, "-m", MICRO, contains=["line 1: images[0]", "absent.png"])


if __name__ == "__main__":
    unittest.main()
