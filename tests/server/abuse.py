"""Attacks a server on loopback and watches that it stays up, loses nothing and forgets nothing.

  python3 tests/server/abuse.py [SECONDS_OF_DISCONNECTS] [HEALTH_LIMIT_MS]

Standard library only; CLEFKIT names the program. Prints one line an attack."""
import concurrent.futures
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLEFKIT = os.environ.get("CLEFKIT", str(ROOT / "build" / "clefkit"))
MODEL = ROOT / "tests" / "golden" / "checkpoints" / "micro"
SANITIZED = os.environ.get("CLEFKIT_SANITIZED") == "1"
QUESTIONS = {"q": {"type": "noul", "instructions": "Is it urgent?"}}


class Server:
    def __init__(self, *flags):
        self.process = subprocess.Popen([CLEFKIT, "serve", "-m", MODEL, "--port", "0", "--log", "off", *flags],
                                        stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.match(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def connect(self, timeout=60):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def get(self, path, timeout=30):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()

    def ask(self, state, timeout=120):
        """A request's status; 0 when there was no whole answer."""
        body = json.dumps({"state": state, "questions": QUESTIONS})
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
            connection.request("POST", "/v1/systemone", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = json.loads(response.read())
            assert ("answers" in answer) == (response.status == 200), answer
            return response.status
        except (http.client.HTTPException, OSError):
            return 0

    def metric(self, name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.get("/metrics")[1], re.M)
        return float(found[1])

    def wait_idle(self):
        for _ in range(600):
            if self.metric("clefkit_jobs") == 0:
                return
            time.sleep(0.1)
        raise AssertionError("jobs are left")

    def resident_mb(self):
        return self.metric("process_resident_memory_bytes") / 1e6


def watch_health(port, results):
    while True:
        begin = time.perf_counter()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", "/healthz")
            is_up = connection.getresponse().status == 200
        except OSError:
            is_up = False
        results.put((time.perf_counter() - begin, is_up))
        time.sleep(0.02)


class Health:
    """Asks /healthz all the time, on a connection of its own each time, from a process of its own:
    beside a thousand threads of one interpreter it would measure how long it waits for its turn."""

    def __init__(self, server):
        context = multiprocessing.get_context("spawn")
        self.results = context.Queue()
        self.process = context.Process(target=watch_health, args=(server.port, self.results), daemon=True)
        self.process.start()
        self.results.get()

    def take(self):
        """Seconds of the checks since the last call, in order of size, none of which may have failed."""
        times = [self.results.get()]  # At least one.
        while not self.results.empty():
            times.append(self.results.get())
        assert all(is_up for _, is_up in times), "a health check failed"
        return sorted(seconds for seconds, _ in times)


def slow_clients(server):
    sockets = [server.connect() for _ in range(200)]
    deadline = time.time() + 12
    alive = len(sockets)
    while alive and time.time() < deadline + 5:
        for one in sockets:
            if one.fileno() < 0:
                continue
            try:
                one.send(b"G")
                one.setblocking(False)
                if one.recv(1) == b"":
                    one.close()
            except BlockingIOError:
                pass
            except OSError:
                one.close()
        alive = sum(one.fileno() >= 0 for one in sockets)
        time.sleep(1)
        time.sleep(1)
    assert alive == 0, f"{alive} of 200 slow clients are still connected after their deadline"


def endless_headers(server):
    """Is told 431, or finds the connection closed, and is not read for ever."""
    with server.connect() as one:
        end = time.time() + 10
        try:
            one.send(b"GET / HTTP/1.1\r\n")
            while time.time() < end:
                one.send(b"X-Header: " + b"x" * 1000 + b"\r\n")
            raise AssertionError("headers were taken for ten seconds")
        except OSError:
            pass
    with server.connect() as one:
        one.send(b"GET / HTTP/1.1\r\n" + (b"X-Header: " + b"x" * 1000 + b"\r\n") * 100)
        answer = one.recv(65536)
        assert answer.startswith(b"HTTP/1.1 431"), answer


def large_bodies(server):
    for _ in range(3):
        with server.connect() as one:
            one.send(b"POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\n")
            answer = one.recv(65536)
            assert answer.startswith(b"HTTP/1.1 413"), answer
            assert b'"error"' in answer, answer
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", "/client/v4/accounts/a/ai/run/@cf/cloudflare/clef-flash", b"x" * (14 << 20))
    response = connection.getresponse()
    assert response.status == 413 and json.loads(response.read())["errors"], response.status


def deep_json(server):
    for body in (b'{"state": ' + b"[" * 10_000 + b"]" * 10_000 + b', "questions": {}}',
                 b'{"a":' * 10_000, b"[" * 1_000_000):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/v1/systemone", body)
        response = connection.getresponse()
        assert 400 <= response.status < 500, (response.status, response.read())


def crowd(server):
    """1,000 at once against a queue of 32: everyone is told something."""
    with concurrent.futures.ThreadPoolExecutor(1000) as pool:
        statuses = list(pool.map(lambda i: server.ask(f"Ticket {i}. " + "word " * (i % 50)), range(1000)))
    counts = {status: statuses.count(status) for status in sorted(set(statuses))}
    assert set(counts) <= {200, 429} and counts.get(200, 0) >= 32, counts
    return counts


def disconnects(server, seconds):
    end = time.time() + seconds

    def leave(seed):
        rng = random.Random(seed)
        asked = 0
        while time.time() < end:
            body = json.dumps({"state": "x" * rng.randrange(4000), "questions": QUESTIONS}).encode()
            head = (f"POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n").encode()
            whole = head + body
            try:
                with server.connect() as one:
                    one.send(whole[:rng.choice([rng.randrange(len(whole)), len(whole)])])
                    time.sleep(rng.random() * 0.05)
                    if rng.random() < 0.1:
                        one.recv(100)
                    if rng.random() < 0.3:  # With a reset.
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                asked += 1
            except OSError:
                pass
        return asked

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return sum(pool.map(leave, range(16)))


def terminate(server):
    """Every request that was begun when the signal came gets an answer."""
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        begun = [pool.submit(server.ask, f"Last ticket {i}. " + "word " * 300) for i in range(24)]
        while server.metric("clefkit_jobs") < 8:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        statuses = [one.result() for one in begun]
    assert server.process.wait(40) == 0, server.process.returncode
    counts = {status: statuses.count(status) for status in sorted(set(statuses))}
    assert set(counts) <= {200, 503, 0} and counts.get(200, 0) >= 8, counts
    return counts


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5
    limit_ms = float(sys.argv[2]) if len(sys.argv) > 2 else 2000
    server = Server("--queue", "32", "--cache", "8")
    for i in range(50):
        assert server.ask("warm " * i) == 200
    before = server.resident_mb()
    health = Health(server)
    for name, attack in (("slow clients", lambda: slow_clients(server)),
                         ("endless headers", lambda: endless_headers(server)),
                         ("large bodies", lambda: large_bodies(server)),
                         ("deep JSON", lambda: deep_json(server)),
                         ("a crowd of 1000", lambda: crowd(server)),
                         ("disconnects", lambda: disconnects(server, seconds))):
        health.take()
        found = attack()
        times = health.take()
        print(f"{name}: {'' if found is None else found} health {1e3 * times[len(times) // 2]:.1f} ms, "
              f"at most {1e3 * times[-1]:.1f}", flush=True)
        assert SANITIZED or 1e3 * times[-1] < limit_ms, "too late"
    server.wait_idle()
    assert server.ask("still there?") == 200
    after = server.resident_mb()
    print(f"memory: {before:.0f} MB before, {after:.0f} MB after")
    assert SANITIZED or after < before + 64, "memory was not given back"
    health.process.kill()
    print(f"SIGTERM: {terminate(server)}")


if __name__ == "__main__":
    main()
