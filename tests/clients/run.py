#!/usr/bin/env python3
"""Runs published, unmodified client libraries against `clefkit serve`. Standard library only.

  run.py node|python CACHE [--only CLIENT] [--model MODEL]

The libraries are installed into CACHE (once for each list of versions), servers are started on
free ports, and each client's script runs against them. A line per check is printed, "ok" or
"FAILED" first. The program is named by the variable CLEFKIT. Exits with 0 when every check held,
1 when one did not, 77 (CTest's "skipped") when npm or the network is missing."""
import argparse
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MICRO = ROOT / "tests" / "golden" / "checkpoints" / "micro"
SKIPPED = 77
OLDEST_NODE = 20  # What the clients themselves ask for.
KEY = "a-key-for-tests-0123456789"

NODE_CLIENTS = ["typesafe", "ollama", "openai", "openrouter", "cloudflare", "ai_gateway",
                "openrouter_ai_provider"]
PYTHON_CLIENTS = ["typesafe", "openai", "ollama", "cloudflare", "clef_router", "clef_compactor",
                  "jevcompat"]
# What npm and pip say when there is nobody to talk to; anything else they say is a failure.
NO_NETWORK = re.compile("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|"
                        "EHOSTUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED|NewConnectionError|"
                        "NameResolutionError|ConnectTimeoutError|ReadTimeoutError|"
                        "Connection refused|Network is unreachable|name resolution|ProxyError")


class Skip(Exception):
    pass


def install(command, folder):
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=540)
    except subprocess.TimeoutExpired:
        raise Skip(f"{command[0]} took too long to install the clients") from None
    if done.returncode == 0:
        return
    said = (done.stdout + done.stderr).strip()
    if NO_NETWORK.search(said):
        raise Skip(f"no network to install the clients: {said[-300:]}")
    sys.exit(f"{' '.join(command)}: {said[-2000:]}")


def stamp_of(folder, sources):
    """A file that exists once exactly the versions that `sources` name are installed."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    return folder / f"installed-{digest[:16]}"


def prepare_node(cache):
    """Returns the command that runs a client's script."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("no node or no npm")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout
    if int(re.match(r"v(\d+)", version)[1]) < OLDEST_NODE:
        raise Skip(f"node {version.strip()}, expected {OLDEST_NODE} or later")
    folder = cache / "node"
    folder.mkdir(parents=True, exist_ok=True)
    # A module is looked up from where the script stands, so the scripts move to the modules.
    for source in [*(HERE / "node").iterdir()]:
        shutil.copy(source, folder)
    stamp = stamp_of(folder, [HERE / "node" / "package.json", HERE / "node" / "package-lock.json"])
    if not stamp.exists():
        install(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
        stamp.touch()
    return lambda client: ["node", str(folder / f"{client}_client.mjs")]


def prepare_python(cache):
    folder = cache / "python"
    requirements = HERE / "python" / "requirements.txt"
    stamp = stamp_of(folder, [requirements])
    python = folder / "bin" / "python"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True,
                              text=True)
        if made.returncode != 0:
            raise Skip(f"no virtual environment: {(made.stdout + made.stderr).strip()[-300:]}")
        install([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--only-binary", ":all:", "-r", str(requirements)], folder)
        stamp.touch()
    return lambda client: [str(python), str(HERE / "python" / f"{client}_client.py")]


class Server:
    """`clefkit serve` on a free port, for the length of a `with`."""

    def __init__(self, name, model, *flags):
        self.name = name
        self._log = []
        self._ready = threading.Event()
        self._process = subprocess.Popen(
            [CLEFKIT, "serve", "-m", str(model), "--port", "0", *flags], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        self.url = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stderr:
            self._log.append(line)
            match = re.search(r"listening on (http://\S+)", line)
            if match and not self.url:
                self.url = match[1].rstrip("/")
                self._ready.set()
        self._ready.set()  # It ended.

    def __enter__(self):
        if not self._ready.wait(120) or not self.url:
            self._process.kill()
            sys.exit(f"clefkit serve ({self.name}) did not come up: {self.log()}")
        return self

    def __exit__(self, *exception):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def log(self):
        return "".join(self._log[-20:]).strip()

    def stop(self):
        """Asks it to end; returns why that went wrong, or None."""
        if self._process.poll() is not None:
            return f"ended by itself with {self._process.returncode}: {self.log()}"
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(30)
        except subprocess.TimeoutExpired:
            return "still running 30 s after SIGTERM"
        self._reader.join(5)
        log = "".join(self._log)
        if code < 0 or "Sanitizer" in log or "runtime error:" in log:
            return f"ended with {code}: {log[-2000:]}"
        return None


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def report(self, client, check, failure=None):
        if failure is None:
            self.passed += 1
            print(f"ok      {client}: {check}", flush=True)
        else:
            self.failed += 1
            print(f"FAILED  {client}: {check}: {failure}", flush=True)


def run_client(client, command, environment, tally):
    """A script prints "ok NAME" or "FAILED NAME: why" for each check and at last "done"."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              errors="replace", timeout=400)
        output, code, errors = done.stdout, done.returncode, done.stderr
    except subprocess.TimeoutExpired as timeout:
        output = (timeout.stdout or b"").decode(errors="replace")
        code, errors = "no exit code: still running after 400 s", ""
    is_done = False
    for line in output.splitlines():
        if line.startswith("ok "):
            tally.report(client, line[3:])
        elif line.startswith("FAILED "):
            name, _, failure = line[7:].partition(": ")
            tally.report(client, name, failure)
        elif line == "done":
            is_done = True
        else:
            print(f"        {line}")
    if not is_done or code not in (0, 1):
        tally.report(client, "runs to its end", f"{code}: {errors.strip()[-2000:]}")


def main():
    global CLEFKIT
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["node", "python"])
    parser.add_argument("cache", type=pathlib.Path, help="a folder, e.g. build/clients")
    parser.add_argument("--only", help="one client")
    parser.add_argument("--model", type=pathlib.Path, default=MICRO)
    arguments = parser.parse_args()
    CLEFKIT = os.environ.get("CLEFKIT", str(ROOT / "build" / "clefkit"))
    cache = arguments.cache.resolve()
    try:
        command_of = (prepare_node if arguments.kind == "node" else prepare_python)(cache)
    except Skip as skip:
        print(f"skipped: {skip}")
        return SKIPPED
    clients = NODE_CLIENTS if arguments.kind == "node" else PYTHON_CLIENTS
    if arguments.only:
        clients = [arguments.only]
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="clefkit-clients-") as folder:
        key_file = pathlib.Path(folder) / "keys"
        key_file.write_text(KEY + "\n")
        key_file.chmod(0o600)
        with Server("plain", arguments.model) as plain, \
                Server("with a key", arguments.model, "--key-file", str(key_file)) as keyed, \
                Server("isolated", arguments.model, "--isolate") as isolated:
            environment = {name: value for name, value in os.environ.items()
                           if not re.match("(TYPESAFE|OPENAI|OLLAMA|OPENROUTER|CLOUDFLARE|CLEF_|"
                                           "AI_GATEWAY|VERCEL|TIKTOKEN|HTTP_PROXY|http_proxy|"
                                           "ALL_PROXY|all_proxy)", name)}
            environment |= {"CLEFKIT": CLEFKIT, "CLIENTS_MODEL": str(arguments.model.resolve()),
                            "CLIENTS_MEDIA": str(ROOT / "tests" / "golden" / "media"),
                            "CLIENTS_URL": plain.url, "CLIENTS_KEYED_URL": keyed.url,
                            "CLIENTS_ISOLATED_URL": isolated.url, "CLIENTS_KEY": KEY,
                            "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
            for client in clients:
                run_client(client, command_of(client), environment, tally)
            for server in (plain, keyed, isolated):
                tally.report("server", f"{server.name}: ends when told to", server.stop())
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
