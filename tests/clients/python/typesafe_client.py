"""typesafe-sdk: System One at /v1/systemone."""
import asyncio
import re

from harness import (KEY, KEYED_URL, LONG_STATE, MISTAKE, PICTURE_URL, QUESTIONS,
                     STATE, TOO_MANY_OPTIONS, URL, ask, check, done, environment, request,
                     require, require_answers, require_equal, require_raises)
from typesafe_sdk import (AsyncTypeSafeClient, Box, Choice, Image, Noul, Score,
                          TypeSafeAuthenticationError,
                          TypeSafeBadRequestError, TypeSafeClient,
                          TypeSafeUnprocessableEntityError)

client = TypeSafeClient(api_key="unused", base_url=URL, timeout=60)
TYPED = {
    "refund": Noul(instructions=QUESTIONS["refund"]["instructions"]),
    "team": Choice(**{k: v for k, v in QUESTIONS["team"].items() if k != "type"}),
    "urgency": Score(**{k: v for k, v in QUESTIONS["urgency"].items() if k != "type"}),
}


def answers_of(response):
    """The SDK's objects as they stood in JSON; it reads the levels of a score as integers."""
    return {name: {member: {str(key): item for key, item in value.items()}
                   if isinstance(value, dict) else value
                   for member, value in answer.model_dump().items()}
            for name, answer in response.answers.items()}


def require_response(response, expected):
    require_answers(answers_of(response), expected["answers"])
    require_equal(response.usage.input_tokens, expected["usage"]["input_tokens"], "input_tokens")
    require_equal(response.usage.output_tokens, 0, "output_tokens")
    require(response.model, "no model")
    require(response.request_id, "no request id")


@check("text")
def _():
    require_response(client.system_one(STATE, TYPED), ask(request()))


@check("address from the environment")
def _():
    environment(TYPESAFE_BASE_URL=URL, TYPESAFE_API_KEY="x")
    require_response(TypeSafeClient().system_one(STATE, TYPED), ask(request()))


@check("object as state")
def _():
    state = {"subject": "Charged twice", "amounts": [12.5, 1e-7, 3], "paid": True, "名前": None}
    require_response(client.system_one(state, TYPED), ask(request(state)))


@check("one-sided, absent and structured texts")
def _():
    questions = {
        "with space.and-dot": {"type": "noul", "instructions": ["Decide.", {"strictly": True}],
                               "criteria": {"true": "They want money"}},
        "질문 🎯": {"type": "noul", "criteria": {"true": None, "false": {"else": "anything"}}},
        "levels": {"type": "score", "instructions": {"scale": "anger"},
                   "criteria": [{"label": "calm"}, ["angry", "shouting"]]},
    }
    require_response(client.system_one(STATE, questions),
                     ask({"state": STATE, "questions": questions}))


@check("255 options")
def _():
    options = dict(list(TOO_MANY_OPTIONS.items())[:255])
    questions = {"team": {"type": "choice", "instructions": "Which?", "criteria": options}}
    require_response(client.system_one(STATE, questions),
                     ask({"state": STATE, "questions": questions}))


@check("picture in extra_body")
def _():
    response = client.system_one(STATE, TYPED, extra_body={"images": [PICTURE_URL]})
    require_response(response, ask(request(images=[PICTURE_URL])))


@check("pictures as assets")
def _():
    picture = Image.from_base64(PICTURE_URL.split(",")[1])
    expected = ask(request({"photo": "images[0]", "note": "as on images[0]"}, images=[PICTURE_URL]))
    require_response(client.system_one({"photo": picture, "note": f"as on {picture}"}, TYPED),
                     expected)
    require_response(client.system_one({"photo": "receipt", "note": "as on receipt"}, TYPED,
                                       assets={"receipt": picture}), expected)
    with require_raises(TypeSafeBadRequestError, "receipt"):
        client.system_one(STATE, TYPED, assets={"receipt": picture})


@check("compressed and uncompressed bodies")
def _():
    for compression in ["zstd", False]:
        with TypeSafeClient(api_key="unused", base_url=URL, timeout=60,
                            compression=compression) as other:
            require_response(other.system_one(LONG_STATE, TYPED), ask(request(LONG_STATE)))


@check("eight at once")
def _():
    states = [f"{STATE} {i}" for i in range(8)]

    async def all_at_once():
        async with AsyncTypeSafeClient(api_key="unused", base_url=URL, timeout=60) as many:
            return await asyncio.gather(*(many.system_one(state, TYPED) for state in states))

    for state, response in zip(states, asyncio.run(all_at_once())):
        require_response(response, ask(request(state)))


@check("mistake")
def _():
    with require_raises(TypeSafeUnprocessableEntityError, "questions.team", MISTAKE) as raised:
        client.system_one(STATE, {**TYPED, "team": Choice(criteria=TOO_MANY_OPTIONS)})
    require_equal(raised.error.body["detail"][0]["loc"][:3], ["body", "questions", "team"], "loc")


@check("question type that Clef does not have")
def _():
    with require_raises(TypeSafeUnprocessableEntityError, "questions.where"):
        client.system_one(STATE, {"where": Box(instructions="Where is the receipt?")})


@check("key")
def _():
    with TypeSafeClient(api_key=KEY, base_url=KEYED_URL, timeout=60) as right:
        require_response(right.system_one(STATE, TYPED), ask(request()))
    with TypeSafeClient(api_key="wrong", base_url=KEYED_URL, timeout=60) as wrong:
        with require_raises(TypeSafeAuthenticationError, "key"):
            wrong.system_one(STATE, TYPED)
        with require_raises(TypeSafeAuthenticationError, "key"):
            wrong.models.list()


@check("models.list")
def _():
    models = client.models.list().models
    require(models, "no models")
    for model in models:
        require(model.name and model.description, f"{model}: expected a name and a description")
        require(re.fullmatch(r"\d{4}-\d\d-\d\d", model.release_date), f"{model}: no date")
        require_response(client.system_one(STATE, TYPED, model=model.name), ask(request()))


done()
