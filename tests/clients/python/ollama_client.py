"""ollama: System One at /v1/systemone, and what its users look around with."""
import os

import ollama

from harness import (KEY, KEYED_URL, MISTAKE, QUESTIONS, STATE, TOO_MANY_OPTIONS, URL, ask, check,
                     done, environment, request, require, require_answers, require_equal,
                     require_raises)

client = ollama.Client(host=URL)


def require_response(response, expected):
    answers = {name: answer.model_dump() for name, answer in response.answers.items()}
    require_answers(answers, expected["answers"])
    require_equal(response.usage.input_tokens, expected["usage"]["input_tokens"], "input_tokens")
    require(response.model, "no model")


@check("text")
def _():
    require_response(client.systemone("clef-flash", STATE, QUESTIONS), ask(request()))


@check("address from the environment")
def _():
    environment(OLLAMA_HOST=URL)
    require_response(ollama.Client().systemone("clef-flash", STATE, QUESTIONS), ask(request()))


@check("object as state, keep_alive")
def _():
    state = {"subject": "Charged twice", "amounts": [12.5, 3]}
    response = client.systemone("clef-flash:latest", state, QUESTIONS, keep_alive="5m")
    require_response(response, ask(request(state)))


@check("mistake")
def _():
    questions = {**QUESTIONS, "team": {"type": "choice", "instructions": "Which?",
                                       "criteria": TOO_MANY_OPTIONS}}
    with require_raises(ollama.ResponseError, "questions.team", MISTAKE) as raised:
        client.systemone("clef-flash", STATE, questions)
    require(isinstance(raised.error.error, str), f"error is {raised.error.error!r}, not a text")
    require(400 <= raised.error.status_code < 500, f"status {raised.error.status_code}")


@check("key")
def _():
    right = ollama.Client(host=KEYED_URL, headers={"Authorization": f"Bearer {KEY}"})
    require_response(right.systemone("clef-flash", STATE, QUESTIONS), ask(request()))
    environment(OLLAMA_API_KEY=KEY)
    exported = ollama.Client(host=KEYED_URL)
    del os.environ["OLLAMA_API_KEY"]
    require_response(exported.systemone("clef-flash", STATE, QUESTIONS), ask(request()))
    with require_raises(ollama.ResponseError, "key", "401"):
        ollama.Client(host=KEYED_URL).systemone("clef-flash", STATE, QUESTIONS)


@check("list, show, ps")
def _():
    models = client.list().models
    require(models and all(model.model for model in models), f"list: {models}")
    for model in models:
        shown = client.show(model.model)
        require("decision" in (shown.capabilities or []), f"capabilities {shown.capabilities}")
    require_equal([m.model for m in client.ps().models], [m.model for m in models], "ps")


done()
