#!/usr/bin/env python3
"""Drives the server's playground in headless Chromium, as a person would.

  playground_test.py (--clefkit PROGRAM --model MODEL | --url URL) [--keep FOLDER] [--packages FOLDER] [TEST…]

Screenshots go to --keep. --packages is where axe-core and the TypeScript SDK are installed from npm, once. Needs
selenium. Exits with 77, which CTest takes for "skipped", when Chromium, chromedriver, npm or the network is missing."""
import argparse
import base64
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PICTURE = ROOT / "tests" / "golden" / "media" / "scene.jpg"
CLIP = ROOT / "tests" / "media" / "vp9.webm"
NPM_PACKAGES = ("axe-core@4.14.1", "@typesafe-ai/sdk@0.6.0")
ANSWER_SECONDS = 300  # Sanitizer builds answer slowly.
NASTY = ("It's \"quoted\" \\n $HOME `id` $(id) !! %s \u2028 \x07 <b>&amp;</b> \u00e4\u6f22\U0001f600\n"
         "JSON\n'''\n\"\"\"\n\\")

options = None  # The command line.
packages = None  # Where node_modules is.
driver = None


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def install_packages(folder):
    if shutil.which("npm") is None:
        skip("no npm")
    stamp = folder / "-".join(NPM_PACKAGES).replace("/", "_")
    if not stamp.exists():
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund",
                               *NPM_PACKAGES], capture_output=True, text=True)
        if done.returncode != 0:
            skip(f"npm install: {done.stderr.strip()[-500:]}")
        stamp.touch()
    return folder


def start_server():
    """Starts `clefkit serve` on a free port; returns the process and its address."""
    server = subprocess.Popen([options.clefkit, "serve", "-m", options.model, "--port", "0"], stderr=subprocess.PIPE,
                              text=True)
    for line in server.stderr:
        found = re.search(r"listening on (http://\S+)", line)
        if found:
            # Whatever else it says must not fill the pipe.
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server, found[1]
    sys.exit(f"clefkit serve did not start, exit code {server.wait()}")


def start_browser(profile):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if browser is None or chromedriver is None:
        skip("no Chromium or no chromedriver")
    settings = webdriver.ChromeOptions()
    settings.binary_location = browser
    for flag in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900",
                 f"--user-data-dir={profile}"):
        settings.add_argument(flag)
    if os.geteuid() == 0:
        settings.add_argument("--no-sandbox")
    settings.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=settings, service=webdriver.ChromeService(executable_path=chromedriver))
    started.execute_cdp_cmd("Browser.grantPermissions", {
        "origin": options.url, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    return started


class Recorder:
    """A server that answers every POST with {"answers": {}} and keeps what came."""

    def __init__(self):
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                recorder.path, recorder.headers = self.path, self.headers
                recorder.body = self.rfile.read(int(self.headers["Content-Length"]))
                reply = b'{"model": "m", "answers": {}, "usage": {"input_tokens": 1, "output_tokens": 0}}'
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Playground(unittest.TestCase):
    """Each test has a fresh page; afterwards no error is in the console, and only the server was asked."""

    def setUp(self):
        self.expected_console = None  # A pattern of console errors that the test provokes.
        self.size(1280, 900)
        self.media(dark=False, reduced_motion=True)
        driver.get_log("browser"), driver.get_log("performance")  # Forget what was.
        driver.get(options.url)
        driver.execute_script("sessionStorage.clear()")
        self.wait_for(lambda: self.text("model") != "")

    def tearDown(self):
        errors = [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        if self.expected_console is not None:
            errors = [error for error in errors if not re.search(self.expected_console, error)]
        self.assertEqual(errors, [])
        for entry in driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                self.assertTrue(url.startswith((options.url + "/", "data:", f"blob:{options.url}/")), url)

    # What a test does and sees.

    def find(self, selector):
        return driver.find_element(By.CSS_SELECTOR, selector)

    def at(self, place):
        return self.find(f'[data-at="{place}"]')

    def text(self, element_id):
        return self.find(f"#{element_id}").text

    def wait_for(self, condition, seconds=10):
        WebDriverWait(driver, seconds, poll_frequency=0.05).until(lambda _: condition())

    def retype(self, element, text):
        element.send_keys(Keys.CONTROL, "a")
        element.send_keys(text)

    def click(self, selector):
        element = self.find(selector)
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def fill(self, element, text):
        """Sets text that chromedriver cannot type, such as characters beyond the BMP."""
        driver.execute_script("arguments[0].value = arguments[1];"
                              "arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", element, text)

    def choose_segment(self, value):
        self.click(f'.segments input[value="{value}"]')

    def ask(self):
        self.click("#ask")
        self.wait_for_answer()

    def wait_for_answer(self):
        self.wait_for(lambda: self.text("status").startswith("Answered") or self.text("error"), ANSWER_SECONDS)
        self.assertEqual(self.text("error"), "")

    def add_file(self, path):
        before = len(driver.find_elements(By.CSS_SELECTOR, "#media li"))
        self.find("#files").send_keys(str(path))
        self.wait_for(lambda: len(driver.find_elements(By.CSS_SELECTOR, "#media li")) == before + 1)

    def shares(self):
        """Question id → {what a bar is for: its per cent}, as shown."""
        return driver.execute_script("""
            return Array.from(document.querySelectorAll('.answer'), (answer) => [
              answer.querySelector('h3').textContent,
              Array.from(answer.querySelectorAll('.shares li'), (row) => [
                row.firstChild.textContent, parseFloat(row.querySelector('.share').textContent)])])""")

    def record_bodies(self):
        driver.execute_script("""
            const send = window.fetch;
            window.sentBodies = [];
            window.fetch = (url, options) => {
              if (options?.body) window.sentBodies.push(options.body);
              return send(url, options);
            };""")

    def size(self, width, height, phone=False):
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone})

    def media(self, dark, reduced_motion):
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced_motion else "no-preference"}]})

    def keep(self, name, width=1280, phone=False):
        """A picture of the whole page at this width."""
        if options.keep is None:
            return
        self.size(width, 900, phone)
        height = driver.execute_script("return document.documentElement.scrollHeight")
        self.size(width, height, phone)
        time.sleep(0.3)
        picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        (options.keep / f"{name}.png").write_bytes(base64.b64decode(picture))
        self.size(width, 900, phone)

    def keep_screen(self, name):
        """A picture of what is seen without scrolling."""
        if options.keep is not None:
            driver.save_screenshot(str(options.keep / f"{name}.png"))

    def assert_fits(self, width):
        self.size(width, 800, phone=True)
        widest = driver.execute_script("return document.documentElement.scrollWidth")
        self.assertLessEqual(widest, width, f"the page is {widest} px wide on a screen of {width}")

    def assert_accessible(self, name):
        driver.execute_script((packages / "node_modules/axe-core/axe.min.js").read_text())
        result = driver.execute_async_script("axe.run(document).then(arguments[0])")
        findings = [f"{finding['id']} ({finding['impact']}): {node['html'][:200]}: {node['failureSummary']}"
                    for finding in result["violations"] if finding["impact"] in ("serious", "critical")
                    for node in finding["nodes"]]
        self.assertEqual(findings, [], name)
        self.assertGreater(len(result["passes"]), 20)

    # The tests.

    def test_asks_about_text(self):
        self.ask()
        shares = self.shares()
        self.assertEqual([name for name, _ in shares], ["urgent", "team", "severity"])
        self.assertEqual([re.sub("✓ | \\(chosen\\)", "", name) for name, _ in shares[1][1]],
                         ["billing", "technical", "sales"])
        for name, rows in shares:
            self.assertAlmostEqual(sum(share for _, share in rows), 100, delta=0.3, msg=name)
            self.assertEqual(sum("✓" in text and "(chosen)" in text for text, _ in rows), 1, name)
        self.assertRegex(self.text("facts"), r"(?s)Time\n[\d.]+ m?s.*Tokens\n\d+.*Model\n")
        self.keep("text")
        self.keep_screen("text-first-screen")
        self.assert_accessible("text")

    def test_asks_about_json_and_checks_it_while_it_is_typed(self):
        self.choose_segment("json")
        self.retype(self.find("#state"), '{"order": 1.0, "items": ["a"')
        self.wait_for(lambda: self.text("state-note").startswith("Not JSON"))
        self.assertEqual(self.find("#state").get_attribute("aria-invalid"), "true")
        self.keep("json-unfinished")
        self.click("#ask")
        self.wait_for(lambda: self.text("error").startswith("The state is not JSON"))
        self.assertEqual(driver.switch_to.active_element.get_attribute("id"), "state")
        self.assert_accessible("unfinished JSON")
        self.find("#state").send_keys(Keys.END, ', "b"], "10": 12345678901234567890, "2": null}')
        self.wait_for(lambda: self.text("state-note") == "This is JSON.")
        self.record_bodies()
        self.ask()
        body = driver.execute_script("return window.sentBodies[0]")
        pairs = json.loads(body, object_pairs_hook=list, parse_int=str, parse_float=str)
        self.assertEqual(dict(pairs)["state"], [("order", "1.0"), ("items", ["a", "b"]),
                                                ("10", "12345678901234567890"), ("2", None)])
        self.keep("json")

    def test_asks_about_a_picture_and_a_clip(self):
        self.retype(self.find("#state"), "What the camera at the door saw")
        self.add_file(PICTURE)
        self.ask()
        bars = "return Array.from(document.querySelectorAll('.bar'), (bar) => bar.dataset.share)"  # Unrounded.
        with_picture = driver.execute_script(bars)
        self.keep("picture")
        self.add_file(CLIP)
        self.wait_for(lambda: driver.execute_script("return document.querySelector('video').videoWidth > 0"))
        self.ask()
        self.assertNotEqual(driver.execute_script(bars), with_picture)
        self.keep("picture-and-clip")
        self.assert_accessible("picture and clip")
        self.record_bodies()
        self.click('[aria-label="Remove picture scene.jpg"]')
        self.assertEqual(driver.switch_to.active_element.get_attribute("id"), "files")
        self.click('[aria-label="Remove clip vp9.webm"]')
        self.click("#ask")
        self.wait_for(lambda: driver.execute_script("return window.sentBodies.length") == 1)
        self.wait_for_answer()
        self.assertEqual(list(json.loads(driver.execute_script("return window.sentBodies[0]"))),
                         ["model", "state", "questions"])

    def test_takes_dropped_and_pasted_files(self):
        give = """
            const bytes = Uint8Array.from(atob(arguments[0]), (letter) => letter.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], arguments[1], {type: arguments[2]}));
            const dropped = {bubbles: true, cancelable: true, dataTransfer: transfer};
            const pasted = {bubbles: true, cancelable: true, clipboardData: transfer};
            document.body.dispatchEvent(arguments[3] === 'drop'
                ? new DragEvent('drop', dropped) : new ClipboardEvent('paste', pasted));"""
        picture = base64.b64encode(PICTURE.read_bytes()).decode()
        driver.execute_script(give, picture, "dropped.jpg", "image/jpeg", "drop")
        self.wait_for(lambda: "dropped.jpg" in self.text("media"))
        driver.execute_script(give, picture, "pasted.jpg", "image/jpeg", "paste")
        self.wait_for(lambda: "pasted.jpg" in self.text("media"))
        driver.execute_script(give, "aGVsbG8=", "notes.txt", "text/plain", "drop")
        self.wait_for(lambda: "notes.txt" in self.text("error"))
        self.assertEqual(len(driver.find_elements(By.CSS_SELECTOR, "#media li")), 2)

    def test_works_by_keyboard_alone(self):
        keys = lambda *names: ActionChains(driver).send_keys(*names).perform()
        focused = lambda: driver.switch_to.active_element

        def tab_to(matches):
            for _ in range(80):
                keys(Keys.TAB)
                element = focused()
                outline = driver.execute_script("""
                    const marked = arguments[0].matches('.segments input, .button input')
                        ? arguments[0].nextElementSibling : arguments[0];
                    const style = getComputedStyle(marked);
                    return parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== 'none'""", element)
                self.assertTrue(outline, f"no focus is seen on {element.get_attribute('outerHTML')[:200]}")
                covered = driver.execute_script("""
                    const box = arguments[0].getBoundingClientRect();
                    const bar = document.getElementById('actions').getBoundingClientRect();
                    const inBar = arguments[0].closest('#actions') !== null;
                    return !inBar && box.left < bar.right && box.bottom + 2 > bar.top && box.top < bar.bottom""", element)
                self.assertFalse(covered, f"the row of Ask covers {element.get_attribute('outerHTML')[:200]}")
                if matches(element):
                    return element
            self.fail("not reached with the Tab key")

        has_id = lambda name: lambda element: element.get_attribute("id") == name
        is_at = lambda place: lambda element: element.get_attribute("data-at") == place
        has_text = lambda text: lambda element: element.text == text
        tab_to(has_id("state"))
        keys(Keys.CONTROL, "a")
        keys("The parcel arrived wet and two cups are broken.")
        tab_to(is_at("questions.0.remove"))
        keys(Keys.ENTER)  # Removes "urgent"; "team" comes first.
        self.assertTrue(is_at("questions.0.remove")(focused()))
        self.assertIn("removed", self.text("status"))
        tab_to(is_at("questions.1.up"))
        keys(Keys.SPACE)  # "severity" before "team".
        self.assertIn("moved up", self.text("status"))
        self.assertTrue(is_at("questions.0.down")(focused()))
        tab_to(has_text("+ Choice"))
        keys(Keys.ENTER)
        self.assertTrue(is_at("questions.2.instructions")(focused()))
        keys("What does the customer want?")
        tab_to(is_at("questions.2.options.0"))
        keys("refund", Keys.TAB, "Money back")
        tab_to(is_at("questions.2.options.1"))
        keys("replacement")
        tab_to(is_at("questions.2.options.add"))
        keys(Keys.ENTER)
        self.assertTrue(is_at("questions.2.options.2")(focused()))
        keys("apology")
        ActionChains(driver).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
        self.wait_for_answer()
        self.assertEqual([name for name, _ in self.shares()], ["severity", "team", "question_3"])
        self.assertEqual(len(self.shares()[2][1]), 3)
        tab_to(lambda element: element.get_attribute("value") == "curl")
        keys(Keys.ARROW_RIGHT)
        self.assertIn("urllib", self.text("code"))
        tab_to(has_id("copy"))
        keys(Keys.ENTER)
        self.wait_for(lambda: self.text("copied") == "Copied.")
        self.keep("keyboard")

    def test_says_what_a_question_lacks(self):
        self.click('[data-add="score"]')
        self.click("#ask")
        self.assertEqual(self.text("error"), "Level 0 of Question 4 is empty.")
        self.assertTrue(driver.switch_to.active_element.get_attribute("data-at") == "questions.3.levels.0")
        self.retype(self.at("questions.3.id"), "team")
        self.at("questions.3.levels.0").send_keys("low")
        self.at("questions.3.levels.1").send_keys("high")
        self.click("#ask")
        self.assertEqual(self.text("error"), "Two questions have the id “team”.")
        self.keep("question-with-a-fault")
        self.retype(self.at("questions.3.id"), "pressure")
        Select(self.at("questions.0.type")).select_by_value("choice")
        self.at("questions.0.options.0").send_keys("10")
        self.at("questions.0.options.1").send_keys("2")
        self.ask()
        self.assertEqual([re.sub("✓ | \\(chosen\\)", "", text) for text, _ in self.shares()[0][1]], ["10", "2"])

    def test_shows_the_servers_refusal_in_one_sentence(self):
        self.expected_console = r"/v1/systemone.* status of 4\d\d"
        folder = tempfile.TemporaryDirectory(prefix="clefkit-playground-")
        self.addCleanup(folder.cleanup)
        broken = pathlib.Path(folder.name) / "broken.png"
        broken.write_bytes(b"not a picture at all")
        self.add_file(broken)
        self.wait_for(lambda: "No preview" in self.text("media"))
        self.click("#ask")
        self.wait_for(lambda: self.text("error") != "", ANSWER_SECONDS)
        self.assertNotIn("\n", self.text("error"))
        self.assertIn("images[0]", self.text("error"))
        self.assertEqual(self.find("#error").get_attribute("role"), "alert")
        self.keep("refused")
        self.assert_accessible("refused")

    def test_can_be_cancelled_and_says_when_the_server_is_gone(self):
        self.expected_console = "ERR_INTERNET_DISCONNECTED"
        network = {"offline": False, "latency": 60000, "downloadThroughput": -1, "uploadThroughput": -1}
        driver.execute_cdp_cmd("Network.enable", {})
        try:
            driver.execute_cdp_cmd("Network.emulateNetworkConditions", network)
            self.click("#ask")
            self.assertEqual(self.text("status"), "Asking…")
            self.wait_for(lambda: self.text("elapsed") != "")
            self.click("#cancel")
            self.wait_for(lambda: self.text("status") == "Cancelled.")
            self.assertEqual(driver.switch_to.active_element.get_attribute("id"), "ask")
            self.click("#ask")
            ActionChains(driver).send_keys(Keys.ESCAPE).perform()
            self.wait_for(lambda: self.text("status") == "Cancelled.")
            driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**network, "offline": True, "latency": 0})
            self.click("#ask")
            self.wait_for(lambda: self.text("error") == "The server cannot be reached.")
        finally:
            driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**network, "latency": 0})
        self.ask()

    def test_asks_for_a_key_and_keeps_it_in_the_tab(self):
        driver.execute_script("""
            const send = window.fetch;
            window.fetch = async (url, options) => options.headers.Authorization === 'Bearer s3cret'
                ? send(url, options) : new Response('{"error": "no key"}', {status: 401});""")
        self.click("#ask")
        self.wait_for(lambda: self.text("error") == "This server wants a key.")
        self.keep("key")
        self.assertEqual(driver.switch_to.active_element.get_attribute("id"), "key")
        driver.switch_to.active_element.send_keys("s3cret", Keys.ENTER)
        self.wait_for_answer()
        self.assertIn("TYPESAFE_API_KEY", self.text("code"))
        self.assertNotIn("s3cret", self.text("code"))
        driver.refresh()
        self.assertEqual(self.find("#key").get_attribute("value"), "s3cret")
        self.assertEqual(driver.execute_script("return localStorage.length + document.cookie.length"), 0)

    def test_copies_the_same_request_whatever_its_text(self):
        self.choose_segment("json")
        state = ('{"10": 1.0, "2": true, "n": null, "__proto__": 9007199254740993, "e": [], "o": {}, '
                 + f'"s": "a\\/b\\u0041", "t": {json.dumps(NASTY)}}}')
        self.fill(self.find("#state"), state)
        Select(self.at("questions.0.type")).select_by_value("choice")
        for place, text in (("id", NASTY), ("instructions", NASTY), ("options.0", NASTY), ("options.1", "__proto__"),
                            ("options.1.description", NASTY)):
            self.fill(self.at(f"questions.0.{place}"), text)
        self.add_file(PICTURE)
        self.record_bodies()
        self.ask()
        asked = json.loads(driver.execute_script("return window.sentBodies[0]"), object_pairs_hook=list)
        for language, run in (("curl", ["bash"]), ("python", [sys.executable, "-"]),
                              ("typescript", ["node", "--input-type=module"])):
            with self.subTest(language):
                self.choose_segment(language)
                self.wait_for(lambda: not self.find("#copy").get_attribute("disabled"))
                self.assertIn("…", self.text("code"))
                self.click("#copy")
                self.wait_for(lambda: self.text("copied") == "Copied.")
                code = driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
                self.assertIn(options.url, code)
                if options.keep is not None:
                    (options.keep / f"copied-{language}.txt").write_text(code)
                recorder = Recorder()
                try:
                    done = subprocess.run(run, input=code.replace(options.url, recorder.url).encode(), cwd=packages,
                                          capture_output=True, timeout=60)
                finally:
                    recorder.close()
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                self.assertEqual(recorder.path, "/v1/systemone")
                sent = json.loads(recorder.body, object_pairs_hook=list)
                if language == "typescript":  # Its objects put whole numbers first, and its numbers are doubles.
                    body = driver.execute_script("return window.sentBodies[0]")
                    self.assertEqual(json.loads(recorder.body, parse_int=float), json.loads(body, parse_int=float))
                else:
                    self.assertEqual(sent, asked)

    def test_bars_move_unless_motion_is_unwanted(self):
        self.media(dark=False, reduced_motion=False)
        driver.execute_script("""
            window.moved = 0;
            document.addEventListener('transitionend', (event) => window.moved += event.target.className === 'bar');""")
        self.ask()
        self.wait_for(lambda: driver.execute_script("return window.moved") > 0)
        widths = driver.execute_script("""
            return Array.from(document.querySelectorAll('.bar'), (bar) =>
              [bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width,
               Number(bar.dataset.share)])""")
        for shown, share in widths:
            self.assertAlmostEqual(shown, share, delta=0.01)
        self.media(dark=False, reduced_motion=True)
        durations = driver.execute_script("""
            return Array.from(document.querySelectorAll('.bar'), (bar) => getComputedStyle(bar).transitionDuration)""")
        self.assertEqual(set(durations), {"0s"})

    def test_fits_a_phone(self):
        self.size(360, 740, phone=True)
        self.add_file(PICTURE)
        self.ask()
        self.keep_screen("phone-after-asking")
        for width in (360, 320):
            self.assert_fits(width)
            self.keep(f"phone-{width}", width, phone=True)
        self.assert_accessible("phone")

    def test_has_a_dark_mode(self):
        self.media(dark=True, reduced_motion=True)
        self.add_file(PICTURE)
        self.ask()
        background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        self.assertTrue(all(int(part) < 64 for part in re.findall(r"\d+", background)), background)
        self.keep("dark")
        self.assert_accessible("dark")
        self.keep("dark-phone", 360, phone=True)
        self.click('[data-add="score"]')
        self.click("#ask")
        self.assert_accessible("dark, with an error")


def main():
    global options, packages, driver
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clefkit")
    parser.add_argument("--model")
    parser.add_argument("--url")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--packages", type=pathlib.Path)
    options, rest = parser.parse_known_args()
    if (options.url is None) == (options.clefkit is None or options.model is None):
        parser.error("give --url, or --clefkit and --model")
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    server = None
    with tempfile.TemporaryDirectory(prefix="clefkit-playground-", ignore_cleanup_errors=True) as folder:
        packages = install_packages((options.packages or pathlib.Path(folder) / "packages").resolve())
        try:
            if options.url is None:
                server, options.url = start_server()
            options.url = options.url.rstrip("/")
            driver = start_browser(f"{folder}/profile")
            done = unittest.main(argv=[sys.argv[0], *rest], exit=False)
        finally:
            if driver is not None:
                driver.quit()
            if server is not None:
                server.terminate()
                server.wait(30)
    sys.exit(not done.result.wasSuccessful())


if __name__ == "__main__":
    main()
