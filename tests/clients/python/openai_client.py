"""openai: Decisions at /v1/decisions."""
import openai

from harness import (KEY, KEYED_URL, MISTAKE, PICTURE_URL, QUESTIONS, STATE, TOO_MANY_OPTIONS, URL,
                     ask, check, done, environment, request, require, require_answers,
                     require_equal, require_raises)

client = openai.OpenAI(api_key="unused", base_url=f"{URL}/v1")
ASKED = [
    {"type": "predicate", "name": "refund", "instructions": QUESTIONS["refund"]["instructions"]},
    {"type": "choice", "name": "team", "instructions": QUESTIONS["team"]["instructions"],
     "choices": [{"value": "technical", "description": "Bugs, outages"},
                 {"value": "billing", "description": "Payments, invoices, refunds"},
                 {"value": "sales"}]},
    {"type": "score", "name": "urgency", "instructions": QUESTIONS["urgency"]["instructions"],
     "levels": [{"label": label} for label in QUESTIONS["urgency"]["criteria"]]},
]


def system_one(answer):
    """An answer of this protocol in the words of the other."""
    if answer.type == "predicate":
        return {"type": "noul", "noul": answer.probability}
    if answer.type == "choice":
        return {"type": "choice", "choice": answer.choice, "confidence": answer.confidence,
                "probabilities": {p.value: p.probability for p in answer.probabilities}}
    return {"type": "score", "score": answer.score, "confidence": answer.confidence,
            "legend": {str(p.value): p.label for p in answer.probabilities},
            "probabilities": {str(p.value): p.probability for p in answer.probabilities}}


def require_decision(decision, expected, names=tuple(QUESTIONS)):
    require_equal([a.name for a in decision.answers],
                  [question.get("name") for question in ASKED] if names == tuple(QUESTIONS)
                  else [None] * len(names), "names")
    require_answers({n: system_one(a) for n, a in zip(names, decision.answers, strict=True)},
                    expected["answers"])
    usage = decision.usage
    require_equal(usage.input_tokens, expected["usage"]["input_tokens"], "input_tokens")
    require_equal(usage.total_tokens, usage.input_tokens + usage.output_tokens, "total_tokens")
    require(0 <= usage.input_tokens_details.cached_tokens <= usage.input_tokens,
            f"cached_tokens {usage.input_tokens_details.cached_tokens}")
    require_equal(usage.output_tokens_details.reasoning_tokens, 0, "reasoning_tokens")
    require(decision.model, "no model")


@check("text")
def _():
    decision = client.decisions.create(model="clef-flash", input=STATE, questions=ASKED)
    require_decision(decision, ask(request()))


@check("address from the environment")
def _():
    environment(OPENAI_BASE_URL=f"{URL}/v1", OPENAI_API_KEY="x")
    decision = openai.OpenAI().decisions.create(model="clef-flash", input=STATE, questions=ASKED)
    require_decision(decision, ask(request()))


@check("a user's message is its text")
def _():
    decision = client.decisions.create(
        model="clef-flash", questions=ASKED,
        input=[{"role": "user", "content": [{"type": "input_text", "text": STATE}]}])
    require_decision(decision, ask(request()))


@check("a user's JSON is its value")
def _():
    value = {"subject": "Charged twice", "amounts": [12.5, 3]}
    decision = client.decisions.create(
        model="clef-flash", questions=ASKED,
        input=[{"role": "user", "content": [{"type": "input_json", "data": value}]}])
    require_decision(decision, ask(request(value)))


@check("picture")
def _():
    decision = client.decisions.create(
        model="clef-flash", questions=ASKED,
        input=[{"role": "user", "content": [{"type": "input_text", "text": STATE},
                                            {"type": "input_image", "image_url": PICTURE_URL}]}])
    require_decision(decision, ask(request(images=[PICTURE_URL])))


@check("a conversation with a tool call is read whole")
def _():
    def conversation(result):
        return [{"role": "developer", "content": "You route tickets."},
                {"role": "user", "content": STATE},
                {"type": "function_call", "call_id": "c1", "name": "lookup",
                 "arguments": '{"card": 7}'},
                {"type": "function_call_output", "call_id": "c1", "output": result},
                {"role": "assistant", "content": [{"type": "output_text", "text": "I see."}]}]
    seen = {client.decisions.create(model="clef-flash", questions=ASKED,
                                    input=conversation(result)).answers[0].probability
            for result in ("one charge", "two charges", "two charges")}
    require_equal(len(seen), 2, "different answers to different tool results")


@check("questions without names")
def _():
    unnamed = [{k: v for k, v in question.items() if k != "name"} for question in ASKED]
    decision = client.decisions.create(model="clef-flash", input=STATE, questions=unnamed)
    ids = ("q1", "q2", "q3")
    expected = ask({"state": STATE, "questions": dict(zip(ids, QUESTIONS.values()))})
    require_decision(decision, expected, ids)


@check("boolean choices")
def _():
    decision = client.decisions.create(
        model="clef-flash", input=STATE,
        questions=[{"type": "choice", "name": "b", "instructions": "Is it?",
                    "choices": [{"value": True}, {"value": "true"}, {"value": False}]}])
    answer = decision.answers[0]
    values = [p.value for p in answer.probabilities]
    require(values == [True, "true", False] and [type(v) for v in values] == [bool, str, bool],
            f"values {values!r}")
    best = max(answer.probabilities, key=lambda p: p.probability).value
    require(type(answer.choice) is type(best) and answer.choice == best,
            f"choice {answer.choice!r}, expected {best!r}")
    require(abs(sum(p.probability for p in answer.probabilities) - 1) < 1e-9, "not a distribution")


@check("mistake")
def _():
    team = {**ASKED[1], "choices": [{"value": option} for option in TOO_MANY_OPTIONS]}
    with require_raises(openai.BadRequestError, MISTAKE) as raised:
        client.decisions.create(model="clef-flash", input=STATE, questions=[ASKED[0], team])
    require_equal(raised.error.type, "invalid_request_error", "type")
    require(str(raised.error.param).startswith("questions[1]"), f"param {raised.error.param!r}")


@check("key")
def _():
    right = openai.OpenAI(api_key=KEY, base_url=f"{KEYED_URL}/v1")
    require_decision(right.decisions.create(model="clef-flash", input=STATE, questions=ASKED),
                     ask(request()))
    wrong = openai.OpenAI(api_key="wrong", base_url=f"{KEYED_URL}/v1")
    with require_raises(openai.AuthenticationError, "key"):
        wrong.decisions.create(model="clef-flash", input=STATE, questions=ASKED)


@check("models.list")
def _():
    models = client.models.list().data
    require(models, "no models")
    for model in models:
        require(model.object == "model" and model.owned_by and isinstance(model.created, int),
                f"{model}")
        require_equal(client.models.retrieve(model.id).id, model.id, "retrieve")
        client.decisions.create(model=model.id, input=STATE, questions=ASKED)


done()
