"""jevcompat: the conformance suite for System One servers."""
import json
import pathlib
import subprocess
import sys
import tempfile

from harness import (ISOLATED_URL, KEY, KEYED_URL, QUESTIONS, STATE, URL, check, done, require,
                     require_answers, require_equal)
from typesafe_sdk import TypeSafeClient

# What a model cannot keep that reads the ids and all questions together.
JOINT = {"semantics.question-id", "semantics.batching", "semantics.question-order"}


def report_of(url, *flags):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "report.json"
        finished = subprocess.run(
            [sys.executable, "-m", "jevcompat.cli", "test", url, "--json", str(path), *flags],
            capture_output=True, text=True, timeout=300)
        require(path.exists(), f"no report: {(finished.stdout + finished.stderr)[-800:]}")
        return json.loads(path.read_text())


def require_level(report, level, skipped, allowed_to_fail=frozenset()):
    """Every requirement of this level passes but those named."""
    wrong = []
    for result in report["results"]:
        if result["level"] != level or result["id"] in allowed_to_fail:
            continue
        if result["status"] == "fail":
            first = result["findings"][0]
            wrong.append(f"{result['id']} ({first['case']}): {first['message'][:300]}")
        elif (result["status"] == "skip") != (result["id"] in skipped):
            wrong.append(f"{result['id']}: {result['status']} {result['reason'][:300]}")
    require(not wrong, f"{len(wrong)} of {level}: " + "; ".join(wrong))


WITHOUT_KEY = {"auth.bearer", "auth.missing", "auth.invalid"}
WITH_KEY = {"auth.ignored-when-off"}
default = report_of(URL)
isolated = report_of(ISOLATED_URL)
keyed = report_of(KEYED_URL, "--key", KEY)


@check("every MUST but renaming, by default")
def _():
    require_level(default, "MUST", WITHOUT_KEY, JOINT)


@check("every SHOULD but joint reading, by default")
def _():
    require_level(default, "SHOULD", WITHOUT_KEY, JOINT)


@check("every MUST, isolated")
def _():
    require_level(isolated, "MUST", WITHOUT_KEY)
    require_equal(isolated["summary"]["verdict"], "conformant", "verdict")


@check("every SHOULD, isolated")
def _():
    require_level(isolated, "SHOULD", WITHOUT_KEY)


@check("every MUST but renaming, with a key")
def _():
    require_level(keyed, "MUST", WITH_KEY, JOINT)


@check("every SHOULD but joint reading, with a key")
def _():
    require_level(keyed, "SHOULD", WITH_KEY, JOINT)


@check("isolated answers depend on nothing but their question")
def _():
    # The suite allows 0.05, which a model with random weights may keep without being isolated.
    renamed = {f"Q 🙂 {name}": question for name, question in QUESTIONS.items()}
    reordered = dict(reversed(QUESTIONS.items()))
    answers = {}
    for url in (URL, ISOLATED_URL):
        with TypeSafeClient(api_key="unused", base_url=url, timeout=60) as client:
            def ask_all(questions):
                response = client.system_one(STATE, questions)
                return [json.loads(response.answers[name].model_dump_json()) for name in questions]
            answers[url] = {
                "together": ask_all(QUESTIONS), "renamed": ask_all(renamed),
                "reordered": ask_all(reordered)[::-1],
                "alone": [ask_all({name: question})[0] for name, question in QUESTIONS.items()]}
    for way, found in answers[ISOLATED_URL].items():
        require_answers(dict(zip(QUESTIONS, found)),
                        dict(zip(QUESTIONS, answers[ISOLATED_URL]["together"])))
        require(way == "together" or answers[URL][way] != answers[URL]["together"],
                f"{way}: the joint answers are the same too, so this check shows nothing")


done()
