"""`serve` and `clients`: the program as a whole; protocols have tests of their own."""
import http.client
import json
import re
import signal
import ssl
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

from harness import CLEFKIT, MICRO, ROOT, CommandTest, clefkit

BODY = {"state": {"amount": 1250.0, "text": "My card was charged twice."},
        "questions": {"refund": {"type": "noul", "instructions": "Money back?"},
                      "team": {"type": "choice", "criteria": {"sales": None, "billing": "Payments"}},
                      "anger": {"type": "score", "criteria": ["calm", "annoyed", "angry"]}}}
TLS = ROOT / "tests" / "server" / "tls"


class ServeTest(CommandTest):
    def serve(self, *flags, env=None):
        """Starts a server; returns its base URL."""
        self.process = subprocess.Popen([CLEFKIT, "serve", "-m", MICRO, "--port", "0", *map(str, flags)],
                                        stderr=subprocess.PIPE, text=True,
                                        env=None if env is None else {"PATH": "/usr/bin", **env})
        self.addCleanup(self.stop)
        for line in self.process.stderr:
            found = re.match(r"listening on (https?://\S+)$", line)
            if found:
                return found[1]
        self.fail("the server did not start")

    def stop(self):
        if self.process.stderr.closed:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        self.log = self.process.stderr.read()
        self.process.stderr.close()

    def post(self, url, body, **headers):
        """Status, headers and JSON body."""
        request = urllib.request.Request(url, json.dumps(body).encode(),
                                         {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=60, context=getattr(self, "tls", None)) as response:
                return response.status, response.headers, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, json.load(error)


class Serve(ServeTest):
    def test_gives_the_numbers_of_ask(self):
        url = self.serve()
        status, headers, body = self.post(url + "/v1/systemone", BODY)
        self.assertEqual(status, 200)
        expected = self.succeed_json("ask", "-m", MICRO, "--json", "--request", self.write("r.json", BODY))
        self.assertEqual(body["answers"], expected["answers"])
        self.assertEqual(body["usage"]["input_tokens"], expected["usage"]["input_tokens"])
        self.assertEqual(body["model"], "micro")
        self.assertEqual(body["x_request_id"], headers["x-request-id"])
        self.assertRegex(body["x_model_digest"], "^[0-9a-f]{64}$")

    def test_every_protocol_gives_the_same_probabilities(self):
        url = self.serve()
        one = {"state": BODY["state"], "questions": {"q1": {**BODY["questions"]["refund"]}}}
        noul = self.post(url + "/v1/systemone", one)[2]["answers"]["q1"]["noul"]
        workers = self.post(url + "/client/v4/accounts/a/ai/run/@cf%2Fcloudflare%2Fclef-flash", one)[2]
        self.assertEqual(workers["result"]["answers"]["q1"]["noul"], round(noul, 4))
        for path in ("/api/v1/systemone", "/api/alpha/decisions"):
            self.assertEqual(self.post(url + path, one)[2]["answers"]["q1"]["noul"], noul)
        decisions = self.post(url + "/v1/decisions", {
            "model": "clef-flash",
            "input": [{"role": "user", "content": [{"type": "input_json", "data": BODY["state"]}]}],
            "questions": [{"type": "predicate", "instructions": "Money back?"}]})
        self.assertEqual(decisions[0], 200, decisions)
        vercel = self.post(url + "/v4/ai/decision-model", {
            "stateParts": [{"type": "json", "value": BODY["state"]}],
            "questions": {"q1": {"type": "boolean", "instructions": "Money back?"}}}, **{"ai-model-id": "clef-flash"})
        self.assertEqual(vercel[2]["answers"]["q1"]["probability"], noul, vercel)

    def test_describes_what_it_sends(self):
        url = self.serve()
        with urllib.request.urlopen(url + "/openapi.json") as response:
            document = json.load(response)
        schemas = document["components"]["schemas"]
        body = self.post(url + "/v1/systemone", BODY)[2]
        check_schema(body, schemas["SystemOneResponse"], schemas)
        check_schema(BODY, schemas["SystemOneRequest"], schemas)
        check_schema(self.post(url + "/v1/systemone", {"state": 1})[2], schemas["SystemOneError"], schemas)
        workers = url + "/client/v4/accounts/a/ai/run/@cf/cloudflare/clef-flash"
        check_schema(self.post(workers, {**BODY, "questions": {"q": {"type": "noul", "instructions": "x"}}})[2],
                     schemas["WorkersAiResponse"], schemas)
        check_schema(self.post(workers, {})[2], schemas["WorkersAiError"], schemas)
        check_schema(self.post(url + "/api/v1/systemone", BODY)[2], schemas["OpenRouterResponse"], schemas)
        check_schema(self.post(url + "/api/v1/systemone", {})[2], schemas["OpenRouterError"], schemas)
        decisions = {"model": "clef-flash", "input": "x", "questions": [
            {"type": "predicate", "instructions": "a"},
            {"type": "choice", "name": "c", "instructions": "b", "choices": [{"value": True}, {"value": "b"}]},
            {"type": "score", "instructions": "c", "levels": [{"label": "low"}, {"label": "high"}]}]}
        check_schema(decisions, schemas["DecisionsRequest"], schemas)
        check_schema(self.post(url + "/v1/decisions", decisions)[2], schemas["DecisionsResponse"], schemas)
        check_schema(self.post(url + "/v1/decisions", {})[2], schemas["DecisionsError"], schemas)
        check_schema(self.post(url + "/v4/ai/decision-model", {})[2], schemas["DecisionModelError"], schemas)
        with urllib.request.urlopen(url + "/v1/models") as response:
            check_schema(json.load(response), schemas["Models"], schemas)
        with self.assertRaises(AssertionError):
            check_schema({**body, "usage": {"input_tokens": 1.5}}, schemas["SystemOneResponse"], schemas)

    def test_asks_for_keys_from_a_file_or_the_environment(self):
        keys = self.write("keys", "# ours\nsecret\n")
        url = self.serve("--key-file", keys)
        self.assertEqual(self.post(url + "/v1/systemone", BODY)[0], 401)
        self.assertEqual(self.post(url + "/v1/systemone", BODY, Authorization="Bearer secret")[0], 200)
        self.stop()
        url = self.serve(env={"CLEFKIT_API_KEYS": "a,b"})
        self.assertEqual(self.post(url + "/v1/systemone", BODY)[0], 401)
        self.assertEqual(self.post(url + "/v1/systemone", BODY, Authorization="Bearer b")[0], 200)

    def test_speaks_tls(self):
        url = self.serve("--tls-cert", TLS / "certificate.pem", "--tls-key", TLS / "key.pem")
        self.assertTrue(url.startswith("https://127.0.0.1:"))
        self.tls = ssl.create_default_context(cafile=TLS / "certificate.pem")
        self.assertEqual(self.post(url + "/v1/systemone", BODY)[0], 200)
        port = int(url.rsplit(":", 1)[1])
        with self.assertRaises((http.client.HTTPException, OSError)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/healthz")
            connection.getresponse()
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("DEFAULT:@SECLEVEL=0")
        old.options |= ssl.OP_NO_TLSv1_2 | ssl.OP_NO_TLSv1_3
        with self.assertRaises(OSError):
            urllib.request.urlopen(url + "/healthz", context=old, timeout=20)

    def test_logs_no_contents(self):
        url = self.serve("--log", "json")
        self.post(url + "/v1/systemone", BODY)
        self.post(url + "/v1/systemone", {"state": "secret word"})
        self.stop()
        lines = [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]
        self.assertEqual([line["status"] for line in lines], [200, 422])
        self.assertGreater(lines[0]["input_tokens"], 10)
        for word in ("charged", "refund", "billing", "secret"):
            self.assertNotIn(word, self.log)

    def test_ends_with_0_when_told_to_stop_and_answers_what_was_begun(self):
        url = self.serve()
        results = []
        long_body = {**BODY, "state": "word " * 2000}
        thread = threading.Thread(target=lambda: results.append(self.post(url + "/v1/systemone", long_body)[0]))
        thread.start()
        while "clefkit_jobs 1" not in urllib.request.urlopen(url + "/metrics").read().decode() and thread.is_alive():
            pass
        self.stop()
        thread.join()
        self.assertEqual(results, [200])
        self.assertEqual(self.process.returncode, 0)

    def test_refuses_to_be_reached_from_elsewhere_without_a_key(self):
        self.fail_with(2, "serve", "-m", MICRO, "--host", "0.0.0.0", contains=["--key-file", "--without-key"])

    def test_blank_keys_are_no_keys(self):
        for keys in (" ", "\n", ",", "\t, ,"):
            for host in ("0.0.0.0", "127.0.0.1"):
                result = subprocess.run([CLEFKIT, "serve", "-m", MICRO, "--port", "0", "--host", host],
                                        capture_output=True, text=True, timeout=60,
                                        env={"PATH": "/usr/bin", "CLEFKIT_API_KEYS": keys})
                self.assertEqual(result.returncode, 2, keys)
                self.assertIn("CLEFKIT_API_KEYS: no key in it", result.stderr)

    def test_other_signals_do_not_keep_it_from_stopping(self):
        self.serve()
        for _ in range(3):
            self.process.send_signal(signal.SIGUSR2)
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(30), 0)

    def test_stops_while_the_model_is_loaded(self):
        with open(self.folder / "log", "w+") as log:
            process = subprocess.Popen([CLEFKIT, "serve", "-m", MICRO, "--port", "0"], stderr=log)
            while "loading" not in (self.folder / "log").read_text():
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            # Nothing when the model was there already.
            self.assertIn(process.wait(30), (0, 130))

    def test_names_what_keeps_it_from_listening(self):
        url = self.serve()
        port = url.rsplit(":", 1)[1]
        result = clefkit("serve", "-m", MICRO, "--port", port)
        self.assertEqual(result.returncode, 4)
        self.assertIn(f"127.0.0.1:{port}", result.stderr)
        result = clefkit("serve", "-m", MICRO, "--port", 0, "--tls-cert", TLS / "key.pem", "--tls-key", TLS / "key.pem")
        self.assertEqual(result.returncode, 2)
        self.assertIn("key.pem", result.stderr)
        self.fail_with(2, "serve", "-m", MICRO, "--port", 70000, contains=["port"])


class Clients(CommandTest):
    def test_prints_the_line_for_each(self):
        text = self.succeed("clients", "http://10.0.0.1:99/").stdout
        for line in ("TYPESAFE_BASE_URL=http://10.0.0.1:99 ", "OPENAI_BASE_URL=http://10.0.0.1:99/v1",
                     "http://10.0.0.1:99/client/v4", "http://10.0.0.1:99/v4/ai"):
            self.assertIn(line, text)


def check_schema(value, schema, schemas, where="body"):
    """The part of JSON Schema that our document uses."""
    if "$ref" in schema:
        return check_schema(value, schemas[schema["$ref"].rsplit("/", 1)[1]], schemas, where)
    if "oneOf" in schema:
        fits = 0
        for one in schema["oneOf"]:
            try:
                check_schema(value, one, schemas, where)
                fits += 1
            except AssertionError:
                pass
        assert fits == 1, f"{where}: {value!r} fits {fits} of {len(schema['oneOf'])} forms"
        return None
    known = {"string": str, "object": dict, "array": list, "boolean": bool, "null": type(None)}
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]

    def is_kind(kind):
        if kind == "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        if kind == "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        return isinstance(value, known[kind])

    assert not kinds or any(map(is_kind, kinds)), f"{where}: {value!r}, expected {kinds}"
    assert "const" not in schema or value == schema["const"], f"{where}: {value!r}, expected {schema['const']!r}"
    assert "enum" not in schema or value in schema["enum"], f"{where}: {value!r}, expected one of {schema['enum']}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        assert schema.get("minimum", value) <= value <= schema.get("maximum", value), f"{where}: {value}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            assert name in value, f"{where}.{name} is missing"
        for name, member in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if isinstance(inner, dict):
                check_schema(member, inner, schemas, f"{where}.{name}")
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for i, item in enumerate(value):
            check_schema(item, schema["items"], schemas, f"{where}[{i}]")
    return None


if __name__ == "__main__":
    unittest.main()
