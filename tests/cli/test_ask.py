"""`clefkit ask` as a person and a script use it."""
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import time
import unittest

from harness import CLEFKIT, GOLDEN, MICRO, SANITIZED, TIED, CommandTest, clefkit

TICKET = json.loads((GOLDEN / "cases" / "micro" / "ticket.json").read_text())


class Ask(CommandTest):
    def ask_json(self, *args, **options):
        return self.succeed_json("ask", "-m", MICRO, "--json", *args, **options)

    def test_answers_a_golden_request(self):
        body = self.ask_json("--request", self.write("r.json", TICKET["request"]))
        self.assertEqual(list(body["answers"]), list(TICKET["request"]["questions"]))
        self.assertEqual(body["usage"]["output_tokens"], 0)
        self.assertEqual(body["usage"]["input_tokens"], len(TICKET["encode"]["input_ids"]))
        for question, expected in TICKET["answers"].items():
            got = body["answers"][question]
            if got["type"] == "noul":
                self.assertAlmostEqual(got["noul"], expected["probabilities"]["true"], delta=1e-4)
            else:
                for option, probability in expected["probabilities"].items():
                    self.assertAlmostEqual(got["probabilities"][option], probability, delta=1e-4)

    def test_flags_and_request_give_the_same_answer(self):
        request = {"state": "My card was charged twice.", "questions": {
            "refund": {"type": "noul", "instructions": "Money back?"},
            "team": {"type": "choice", "instructions": "Who?",
                     "criteria": {"billing": "Invoices", "sales": None}},
            "anger": {"type": "score", "criteria": ["calm", "angry"]}}}
        by_request = self.ask_json("--request", self.write("r.json", request))
        by_flags = self.ask_json("--state", request["state"], "--noul", "refund=Money back?",
                                 "--choice", "team: Who?=billing: Invoices|sales",
                                 "--score", "anger=calm,angry")
        self.assertEqual(by_request, by_flags)
        by_file = self.ask_json("--state-file", self.write("s.txt", request["state"]),
                                "--questions", self.write("q.json", request["questions"]))
        self.assertEqual(by_request, by_file)
        by_stdin = self.ask_json("--questions", self.write("q.json", request["questions"]),
                                 stdin=request["state"])
        self.assertEqual(by_request, by_stdin)

    def test_json_state_differs_from_its_text(self):
        text = '{"b": 1.50, "a": 2}'
        question = ("--noul", "q=Is b above 1?")
        as_json = self.ask_json("--state-json", text, *question)
        from_file = self.ask_json("--state-json", f"@{self.write('s.json', text)}", *question)
        as_text = self.ask_json("--state", text, *question)
        canonical = self.ask_json("--state", '{"a":2,"b":1.5}', *question)
        self.assertEqual(as_json, from_file)
        self.assertEqual(as_json, canonical)
        self.assertNotEqual(as_json["usage"], as_text["usage"])

    def test_threads_and_chunks_do_not_change_answers(self):
        path = self.write("r.json", TICKET["request"])
        one = self.succeed("ask", "-m", MICRO, "--json", "--request", path, "--threads", "1").stdout
        two = self.succeed("ask", "-m", MICRO, "--json", "--request", path, "--threads", "2").stdout
        self.assertEqual(one, two)
        small = self.ask_json("--request", path, "--chunk", "7")
        whole = json.loads(one)
        for question, answer in whole["answers"].items():
            for option, probability in answer.get("probabilities", {}).items():
                self.assertAlmostEqual(small["answers"][question]["probabilities"][option],
                                       probability, delta=1e-4)

    def test_rounds_and_changes_confidence_on_request(self):
        path = self.write("r.json", TICKET["request"])
        plain = self.ask_json("--request", path)
        rounded = self.ask_json("--request", path, "--round", "4", "--confidence", "top")
        for question, answer in rounded["answers"].items():
            if answer["type"] == "choice":
                top = max(plain["answers"][question]["probabilities"].values())
                self.assertEqual(answer["confidence"], round(top, 4))

    def test_prints_bars_without_colour_into_a_pipe(self):
        out = self.succeed("ask", "-m", MICRO, "--state", "x", "--noul", "refund=Refund?").stdout
        self.assertIn("refund", out)
        self.assertIn("█", out)
        self.assertNotIn("\x1b", out)

    def test_colours_on_a_terminal(self):
        master, slave = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        process = subprocess.run([CLEFKIT, "ask", "-m", MICRO, "--state", "x", "--noul", "q=?"],
                                 stdout=slave, stderr=subprocess.PIPE, timeout=60,
                                 env={**environment, "TERM": "xterm"})
        os.close(slave)
        text = os.read(master, 65536).decode()
        os.close(master)
        self.assertEqual(process.returncode, 0)
        self.assertIn("\x1b[", text)

    def test_truncates_only_when_told(self):
        args = ("ask", "-m", MICRO, "--json", "--max-tokens", "300", "--noul", "q=?",
                "--state", "word " * 2000)
        result = clefkit(*args)
        self.assertEqual(result.returncode, 2)
        error = json.loads(result.stdout)["error"]
        self.assertEqual(error["code"], "too_large")
        self.assertIn("300", error["message"])
        body = self.succeed_json(*args, "--truncate")
        self.assertEqual(body["usage"]["input_tokens"], 300)
        self.assertGreater(body["usage"]["x_dropped_state_tokens"], 1000)

    def test_model_name_is_the_requests_or_its_own(self):
        request = {"state": "x", "questions": {"q": {"type": "noul"}}}
        self.assertEqual(self.ask_json("--request", self.write("r.json", request))["model"], "micro")
        request["model"] = "clef-flash"
        self.assertEqual(self.ask_json("--request", self.write("r.json", request))["model"],
                         "clef-flash")

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_an_output_that_fails_is_one_error(self):
        for flags in ([], ["--json"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([CLEFKIT, "ask", "-m", str(MICRO), "--state", "x", "--noul", "q=?", *flags],
                                        stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, 4)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_interrupt_stops_waiting_for_input(self):
        process = subprocess.Popen([CLEFKIT, "ask", "-m", str(MICRO), "--state", "-", "--noul", "q=?"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1.0)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 130)
        self.assertLess(time.monotonic() - start, 5.0 if SANITIZED else 1.0)
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()

    def test_takes_the_model_from_the_environment(self):
        self.succeed("ask", "--state", "x", "--noul", "q=?", env={"CLEFKIT_MODEL": str(MICRO)})


class AskStates(CommandTest):
    def test_answers_a_line_each_and_goes_on_after_a_bad_one(self):
        states = self.write("s.jsonl", '"first"\n{"a": 1}\n{bad\n\n"last"')
        result = self.succeed("ask", "-m", MICRO, "--states", states, "--noul", "q=?", "--json")
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([line["line"] for line in lines], [1, 2, 3, 5])
        self.assertEqual(lines[2]["error"]["code"], "invalid_argument")
        self.assertIn("line 3", lines[2]["error"]["where"])
        for line in (lines[0], lines[1], lines[3]):
            self.assertEqual(list(line["answers"]), ["q"])
        self.assertIn("1 of 5 lines", result.stderr)

    def test_each_line_equals_its_own_ask(self):
        states = self.write("s.jsonl", '"one"\n"two"\n')
        lines = self.succeed("ask", "-m", TIED, "--states", states, "--noul", "q=?").stdout.splitlines()
        for line, state in zip(lines, ("one", "two")):
            alone = self.succeed_json("ask", "-m", TIED, "--json", "--state", state, "--noul", "q=?")
            body = json.loads(line)
            del body["line"]
            self.assertEqual(body["answers"], alone["answers"])

    def test_interrupt_stops_within_a_second(self):
        states = self.write("s.jsonl", '"word word word"\n' * 200000)
        process = subprocess.Popen([CLEFKIT, "ask", "-m", str(MICRO), "--states", str(states),
                                    "--noul", "q=?"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        process.communicate(timeout=30)
        self.assertLess(time.monotonic() - start, 5.0 if SANITIZED else 1.0)
        self.assertEqual(process.returncode, 130)


class ModelInTheBox(CommandTest):
    """The program alone in a folder, with and without a model where it looks for its own."""
    NO_MODEL = {"CLEFKIT_MODEL": ""}
    ASK = ("ask", "--state", "x", "--noul", "q=?")

    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        self.program = self.folder / "bin" / "clefkit"
        shutil.copy(CLEFKIT, self.program)

    def put_in_box(self, share):
        box = share / "clefkit" / "models" / "clef-nano"
        shutil.copytree(MICRO, box)
        return box

    def test_answers_when_none_is_named_and_says_so(self):
        named = self.succeed(*self.ASK, "-m", MICRO, "--json").stdout
        # As installed, and as in a build's folder.
        for share in (self.folder / "share", self.folder / "bin" / "share"):
            box = self.put_in_box(share)
            result = self.succeed(*self.ASK, "--json", program=self.program, env=self.NO_MODEL)
            self.assertEqual(json.loads(result.stdout)["answers"], json.loads(named)["answers"])
            self.assertEqual(json.loads(result.stdout)["model"], "clef-nano")
            self.assertEqual(result.stderr.count("\n"), 1)
            self.assertIn("no -m given: clef-nano, the small model in the box", result.stderr)
            quiet = self.succeed(*self.ASK, "--quiet", program=self.program, env=self.NO_MODEL)
            self.assertEqual(quiet.stderr, "")
            shutil.rmtree(box)

    def test_answers_to_other_commands_too(self):
        self.put_in_box(self.folder / "share")
        request = {"state": "x", "questions": {"q": {"type": "noul"}}, "expected": {"q": True}}
        for args in (("tokenize",), ("encode", "--state", "x", "--noul", "q=?"),
                     ("trace", "--state", "x", "--noul", "q=?", "-o", self.folder / "t.safetensors"),
                     ("eval", self.write("set.jsonl", request)),
                     ("bench", "--tokens", 256, "--repeat", 1)):
            result = self.succeed(*args, program=self.program, env=self.NO_MODEL)
            self.assertEqual(result.stderr.count("in the box"), 1, args)

    def test_does_not_stand_in_for_one_that_is_named_and_wrong(self):
        self.put_in_box(self.folder / "share")
        self.fail_with(3, *self.ASK, "-m", self.folder, program=self.program, contains=["config.json"])
        self.fail_with(3, *self.ASK, program=self.program, contains=["config.json"],
                       env={"CLEFKIT_MODEL": str(self.folder)})
        self.succeed(*self.ASK, program=self.program, env={"CLEFKIT_MODEL": str(MICRO)})

    @unittest.skipIf(pathlib.Path("/usr/local/share/clefkit").exists(), "clefkit is installed here")
    def test_may_not_be_there(self):
        self.fail_with(2, *self.ASK, program=self.program, env=self.NO_MODEL,
                       contains=["--model: none given and no model beside the program", "CLEFKIT_MODEL"])


class AskErrors(CommandTest):
    def bad(self, request, *contains):
        text = request if isinstance(request, (str, bytes)) else json.dumps(request)
        return self.fail_with(2, "ask", "-m", MICRO, "--request", self.write("r.json", text),
                              contains=contains)

    def question(self, **question):
        return {"state": "x", "questions": {"q": question}}

    def test_refuses_wrong_requests_in_one_sentence(self):
        self.bad({"state": "x"}, "question")
        self.bad({"state": "x", "questions": {}}, "at least one question")
        self.bad({"questions": {"q": {"type": "noul"}}}, "state")
        self.bad(self.question(type="Noul"), "q", "Noul", "noul")
        self.bad(self.question(type="score", criteria={"0": "a"}), "criteria", "array")
        self.bad(self.question(type="choice", criteria={}), "criteria", "0 options", "1 to 255")
        self.bad(self.question(type="choice", criteria={"": "x"}), "criteria")
        self.bad(self.question(type="choice", criteria={str(i): None for i in range(256)}), "256", "255")
        self.bad(b'{"state": "\xff", "questions": {"q": {"type": "noul"}}}', "UTF-8")
        self.bad("[" * 200000, "64")
        self.bad("", "JSON")

    def test_takes_255_options(self):
        request = self.question(type="choice", criteria={str(i): None for i in range(255)})
        body = self.succeed_json("ask", "-m", MICRO, "--json", "--request", self.write("r", request))
        self.assertEqual(len(body["answers"]["q"]["probabilities"]), 255)

    def test_names_what_is_missing(self):
        self.fail_with(2, "ask", "-m", MICRO, "--state", "x", contains=["questions"])
        self.fail_with(2, "ask", "-m", MICRO, "--request", self.folder / "absent", contains=["absent"])
        self.fail_with(3, "ask", "-m", self.folder, "--state", "x", "--noul", "q=?",
                       contains=["config.json"])
        self.fail_with(2, "ask", "-m", MICRO, "--state", "x", "--noul", "q=?", "--frobnicate")
        self.fail_with(2, "ask", "-m", MICRO, "--state", "x", "--noul", "q=a", "--noul", "q=b",
                       contains=["twice"])

    def test_json_errors_go_to_standard_output(self):
        result = clefkit("ask", "-m", MICRO, "--json", "--state", "x", "--score", "q=")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(set(json.loads(result.stdout)["error"]), {"code", "message", "where"})


class Help(CommandTest):
    def test_every_command_explains_itself(self):
        for command in ("ask", "encode", "tokenize", "trace", "synth", "eval"):
            out = self.succeed(command, "--help").stdout
            self.assertIn("-h,--help", out)
            self.assertGreater(len(out.splitlines()), 5)
        self.assertIn("Exit codes", self.succeed("--help").stdout)
        self.succeed("--version")
        self.fail_with(2)


if __name__ == "__main__":
    unittest.main()
