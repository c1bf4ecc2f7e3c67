"""clef-compactor: Workers AI, one noul question per chunk."""
import clef_compactor
from clef_compactor.client import ClefClient
from clef_compactor.config import Settings
from clef_compactor.core import build_questions, build_state
from clef_compactor.exceptions import ClefAPIError, ClefAuthError

from harness import (KEY, KEYED_URL, MISTAKE, PICTURE_URL, QUESTIONS, STATE, TOO_MANY_OPTIONS, URL,
                     ask, check, done, environment, request, require, require_answers,
                     require_close, require_equal, require_raises)

CHUNKS = [f"Chunk {i}: refunds take {i} days." for i in range(20)]
QUERY = "How long does a refund take?"


def settings(url=URL, key="unused", **more):
    return {"account_id": "an-account", "api_token": key, "base_url": f"{url}/client/v4",
            "max_retries": 0, **more}


def compactor(**more):
    # No such encoding: it then counts words and fetches no vocabulary.
    return clef_compactor.ClefCompactor(encoding_model="none", **settings(**more))


def scores_of(model):
    scored = compactor(model=model).score(QUERY, CHUNKS)
    expected = ask({"state": build_state(QUERY, CHUNKS, 512),
                    "questions": build_questions(len(CHUNKS))})["answers"]
    require_equal(len(scored), len(CHUNKS), "chunks")
    for i, chunk in enumerate(scored):
        require_close(chunk.score, expected[f"chunk_{i + 1}"]["noul"], f"chunk {i}", decimals=4)


@check("score, its default model clef")
def _():
    scores_of("clef")


@check("score, clef-flash")
def _():
    scores_of("clef-flash")


@check("compact")
def _():
    result = compactor().compact(QUERY, CHUNKS[:5], token_budget=10)
    require_equal(len(result.kept) + len(result.dropped), 5, "chunks")
    expected = ask({"state": build_state(QUERY, CHUNKS[:5], 512),
                    "questions": build_questions(5)})
    require_equal(result.usage.input_tokens, expected["usage"]["input_tokens"], "input_tokens")


@check("address from the environment")
def _():
    environment(CLEF_BASE_URL=f"{URL}/client/v4", CLEF_ACCOUNT_ID="any", CLEF_API_TOKEN="x")
    exported = clef_compactor.ClefCompactor(encoding_model="none")
    require_equal(len(exported.score(QUERY, CHUNKS[:2])), 2, "chunks")


@check("all question types, picture")
def _():
    reply = ClefClient(Settings.from_env(**settings())).ask(STATE, QUESTIONS, images=[PICTURE_URL])
    require_answers(reply.answers, ask(request(images=[PICTURE_URL]), "purity")["answers"],
                    decimals=4)
    require(reply.request_id, "no cf-ray")


@check("mistake")
def _():
    team = {**QUESTIONS["team"], "criteria": TOO_MANY_OPTIONS}
    with require_raises(ClefAPIError, "422") as raised:
        ClefClient(Settings.from_env(**settings())).ask(STATE, {"team": team})
    require(MISTAKE in str(raised.error.body["errors"]), f"body {raised.error.body}")


@check("key")
def _():
    with compactor(url=KEYED_URL, key=KEY) as right:
        require_equal(len(right.score(QUERY, CHUNKS[:2])), 2, "chunks")
    with require_raises(ClefAuthError, "401"):
        compactor(url=KEYED_URL, key="wrong").score(QUERY, CHUNKS[:2])


done()
