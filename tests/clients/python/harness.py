"""What the client scripts share: the request, the expected answers, named checks."""
import base64
import json
import math
import os
import pathlib
import subprocess

URL = os.environ["CLIENTS_URL"]
KEYED_URL = os.environ["CLIENTS_KEYED_URL"]
ISOLATED_URL = os.environ["CLIENTS_ISOLATED_URL"]
KEY = os.environ["CLIENTS_KEY"]

STATE = "My card was charged twice this month. Please refund one of them today – Zoë."
QUESTIONS = {
    "refund": {"type": "noul", "instructions": "Does the customer want money back?"},
    # In no sorted order: answers keep the request's.
    "team": {"type": "choice", "instructions": "Which team should handle this?",
             "criteria": {"technical": "Bugs, outages", "billing": "Payments, invoices, refunds",
                          "sales": None}},
    "urgency": {"type": "score", "instructions": "How urgent is it?",
                "criteria": ["Can wait", "This week", "Today"]},
}
# More options than any protocol allows: the deliberate mistake, and what our message says of it.
TOO_MANY_OPTIONS = {f"option {i}": None for i in range(256)}
MISTAKE = "256"
LONG_STATE = "\n".join(f"{i}. {STATE}" for i in range(60))  # Past any size that is sent as it is.

_PICTURE = pathlib.Path(os.environ["CLIENTS_MEDIA"]) / "scene.jpg"
PICTURE_BYTES = _PICTURE.read_bytes()
PICTURE_BASE64 = base64.b64encode(PICTURE_BYTES).decode()
PICTURE_URL = "data:image/jpeg;base64," + PICTURE_BASE64

# The server may cut a prompt into other chunks than `ask` does: sums in another order.
TOLERANCE = 1e-6


def ask(request, confidence="typesafe"):
    """What `clefkit ask` answers on the same model, without a server."""
    done = subprocess.run(
        [os.environ["CLEFKIT"], "ask", "-m", os.environ["CLIENTS_MODEL"], "--json", "--quiet",
         "--confidence", confidence, "--request", "-"],
        input=json.dumps(request), capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"clefkit ask: {(done.stdout + done.stderr).strip()}")
    return json.loads(done.stdout)


def request(state=STATE, **more):
    return {"state": state, "questions": QUESTIONS, **more}


def require(condition, message):
    if not condition:
        raise AssertionError(message)


def require_equal(found, expected, where):
    require(found == expected and isinstance(found, bool) == isinstance(expected, bool),
            f"{where}: {found!r}, expected {expected!r}")


def require_close(found, expected, where, decimals=None):
    require(isinstance(found, (int, float)) and not isinstance(found, bool)
            and math.isfinite(found), f"{where}: {found!r}, expected a finite number")
    if decimals is not None:
        require(abs(found - round(found, decimals)) < 1e-12,
                f"{where}: {found!r}, expected {decimals} decimals")
    bound = TOLERANCE if decimals is None else 0.5 * 10**-decimals + TOLERANCE
    require(abs(found - expected) <= bound, f"{where}: {found!r}, expected {expected!r}")


def require_answers(found, expected, decimals=None):
    """Both are the `answers` of a System One response; numbers by value, the rest exactly."""
    require_equal(list(found), list(expected), "ids of the answers")
    for question, right in expected.items():
        answer = found[question]
        members = [member for member in answer if not member.startswith("x_")]
        require_equal(sorted(members), sorted(right), f"{question}: members")
        for member, value in right.items():
            where = f"{question}.{member}"
            if member == "probabilities":
                require_equal(list(answer[member]), list(value), f"{where}: options in order")
                for option, probability in value.items():
                    require_close(answer[member][option], probability, f"{where}.{option}",
                                  decimals)
            elif isinstance(value, float):
                require_close(answer[member], value, where, decimals)
            else:
                require_equal(answer[member], value, where)


def require_raises(expected, *texts):
    """A context manager: an error of exactly this class is raised, and says all of `texts`."""
    return _Raises(expected, texts)


class _Raises:
    def __init__(self, expected, texts):
        self._expected, self._texts = expected, texts
        self.error = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        name = self._expected.__name__
        require(kind is not None, f"no error, expected {name}")
        if not issubclass(kind, Exception):
            return False
        require(kind is self._expected, f"{kind.__name__}: {error}, expected {name}")
        for text in self._texts:
            require(text in str(error), f"{name} says {str(error)[:400]!r}, expected {text!r}")
        self.error = error
        return True


def environment(**variables):
    """What a person would export instead of writing it into the program."""
    os.environ.update(variables)


_FAILED = []


def check(name):
    """Decorates a function that is one check and runs it at once."""
    def run(function):
        try:
            function()
        except Exception as error:  # Whatever a client throws is a finding.
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            text = f"{kind}{error}".replace("\n", " ")
            print(f"FAILED {name}: {text[:1500]}", flush=True)
            _FAILED.append(name)
        else:
            print(f"ok {name}", flush=True)
        return function
    return run


def done():
    print("done")
    raise SystemExit(1 if _FAILED else 0)
