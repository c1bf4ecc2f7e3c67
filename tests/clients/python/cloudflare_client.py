"""cloudflare: Workers AI at /client/v4/accounts/…/ai/run/…"""
import cloudflare

from harness import (KEY, KEYED_URL, MISTAKE, PICTURE_BASE64, PICTURE_URL, QUESTIONS,
                     TOO_MANY_OPTIONS, URL, ask, check, done, environment, request, require,
                     require_answers, require_equal, require_raises)

MODEL = "@cf/cloudflare/clef-flash"
client = cloudflare.Cloudflare(api_token="unused", base_url=f"{URL}/client/v4")


def run(body, *, using=client, model=MODEL):
    return using.ai.run(model, account_id="an-account", extra_body=body)


def require_result(result, expected):
    require_answers(result["answers"], expected["answers"], decimals=4)
    for count in ("input_tokens", "output_tokens"):
        require_equal(result["usage"][count], expected["usage"][count], count)
    require(result["model"], "no model")


def expected_of(body):
    return ask(body, confidence="purity")


@check("text")
def _():
    require_result(run(request(model="clef-flash")), expected_of(request()))


@check("address from the environment")
def _():
    environment(CLOUDFLARE_BASE_URL=f"{URL}/client/v4", CLOUDFLARE_API_TOKEN="x")
    require_result(run(request(), using=cloudflare.Cloudflare()), expected_of(request()))


@check("the other model's name")
def _():
    require_result(run(request(model="clef"), model="@cf/cloudflare/clef"), expected_of(request()))


@check("pictures, both encodings")
def _():
    images = [PICTURE_URL, {"content_type": "image/jpeg", "base64": PICTURE_BASE64}]
    require_result(run(request(images=images)), expected_of(request(images=images)))


@check("mistake")
def _():
    questions = {**QUESTIONS, "team": {**QUESTIONS["team"], "criteria": TOO_MANY_OPTIONS}}
    with require_raises(cloudflare.UnprocessableEntityError, "team", MISTAKE) as raised:
        run({**request(), "questions": questions})
    require_equal([error.code for error in raised.error.errors], [5012], "codes")


@check("what only this protocol refuses")
def _():
    with require_raises(cloudflare.UnprocessableEntityError, "unheard_of"):
        run(request(unheard_of=1))
    with require_raises(cloudflare.UnprocessableEntityError, "a b"):
        run({**request(), "questions": {"a b": QUESTIONS["refund"]}})
    with require_raises(cloudflare.UnprocessableEntityError, "instructions"):
        run({**request(), "questions": {"refund": {"type": "noul", "instructions": ""}}})
    with require_raises(cloudflare.UnprocessableEntityError, "65"):
        run({**request(), "questions": {f"q{i}": QUESTIONS["refund"] for i in range(65)}})
    with require_raises(cloudflare.UnprocessableEntityError, "image"):
        run(request(images=[PICTURE_URL] * 5))
    with require_raises(cloudflare.BadRequestError, "Boolean") as raised:
        run({**request(), "questions": {"refund": {"type": "Boolean", "instructions": "?"}}})
    require_equal([error.code for error in raised.error.errors], [5006], "codes")


@check("key")
def _():
    right = cloudflare.Cloudflare(api_token=KEY, base_url=f"{KEYED_URL}/client/v4")
    require_result(run(request(), using=right), expected_of(request()))
    wrong = cloudflare.Cloudflare(api_token="wrong", base_url=f"{KEYED_URL}/client/v4")
    with require_raises(cloudflare.AuthenticationError) as raised:
        run(request(), using=wrong)
    require_equal([error.code for error in raised.error.errors], [10000], "codes")


@check("models")
def _():
    models = list(client.ai.models.list(account_id="an-account").result)
    require(models, "no models")
    for model in models:
        require_result(run(request(), model=model["name"]), expected_of(request()))
    schema = client.ai.models.schema.get(account_id="an-account", model=MODEL)
    require(schema.input and "questions" in str(schema.input), f"schema {schema}")


done()
