"""clef-router: Workers AI."""
import asyncio

import clef_router
from clef_router.errors import ClefAPIError, ClefAuthError

from harness import (KEY, KEYED_URL, PICTURE_BASE64, PICTURE_URL, QUESTIONS, STATE, URL, ask,
                     check, done, request, require, require_answers, require_equal, require_raises)


def options(url=URL, key="unused"):
    return {"account_id": "an-account", "api_token": key, "base_url": f"{url}/client/v4",
            "max_retries": 0}


router = clef_router.ClefRouter(**options())


def require_decision(decision, body):
    expected = ask(body, confidence="purity")
    # Its classes lose what they do not know, so the envelope is read as it came too.
    require_answers(decision.raw_response["result"]["answers"], expected["answers"], decimals=4)
    for name, answer in expected["answers"].items():
        parsed = decision.answer(name)
        for member in ("noul", "choice", "score"):
            if member in answer:
                value = decision.raw_response["result"]["answers"][name][member]
                require_equal(getattr(parsed, member), value, f"{name}.{member}")
    require_equal(decision.usage.input_tokens, expected["usage"]["input_tokens"], "input_tokens")
    require(decision.model, "no model")


@check("decide")
def _():
    require_decision(router.decide(STATE, QUESTIONS), request())


@check("decide, asynchronously")
def _():
    async def decide():
        async with clef_router.AsyncClefRouter(**options()) as asynchronous:
            return await asynchronous.decide(STATE, QUESTIONS)
    require_decision(asyncio.run(decide()), request())


@check("pictures, both encodings")
def _():
    images = [PICTURE_URL, {"content_type": "image/jpeg", "base64": PICTURE_BASE64}]
    require_decision(router.decide(STATE, QUESTIONS, images), request(images=images))


@check("route")
def _():
    routing = router.route("Design a rate limiter", system_prompt="Be quick.")
    asked = {name: dict(question) for name, question in clef_router.DEFAULT_QUESTIONS.items()}
    state = "Instructions:\nBe quick.\n\nPrompt:\nDesign a rate limiter"
    require_decision(routing.decision, {"state": state, "questions": asked})


@check("mistake")
def _():
    with require_raises(ClefAPIError, "a b") as raised:
        router.decide(STATE, {"a b": QUESTIONS["refund"]})
    require_equal((raised.error.status_code, raised.error.error_code), (422, 5012), "code")


@check("key")
def _():
    require_decision(clef_router.ClefRouter(**options(KEYED_URL, KEY)).decide(STATE, QUESTIONS),
                     request())
    with require_raises(ClefAuthError, "401") as raised:
        clef_router.ClefRouter(**options(KEYED_URL, "wrong")).decide(STATE, QUESTIONS)
    require_equal(raised.error.error_code, 10000, "code")


done()
