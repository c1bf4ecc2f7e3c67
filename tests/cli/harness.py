"""Runs the clefkit program for the command line tests. Standard library only."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLEFKIT = os.environ.get("CLEFKIT", str(ROOT / "build" / "clefkit"))
# A sanitizer's build takes several times as long.
SANITIZED = os.environ.get("CLEFKIT_SANITIZED") == "1"
GOLDEN = ROOT / "tests" / "golden"
MICRO = GOLDEN / "checkpoints" / "micro"
TIED = GOLDEN / "checkpoints" / "tied"


def clefkit(*args, stdin="", timeout=300, env=None, program=CLEFKIT):
    """Runs a command; returns the finished process with text output."""
    data = stdin if isinstance(stdin, bytes) else stdin.encode()
    result = subprocess.run([str(program), *map(str, args)], input=data, capture_output=True,
                            timeout=timeout, env={**os.environ, **(env or {})})
    result.stdout = result.stdout.decode(errors="replace")
    result.stderr = result.stderr.decode(errors="replace")
    return result


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="clefkit-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content, ensure_ascii=False)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def succeed(self, *args, **options):
        result = clefkit(*args, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def succeed_json(self, *args, **options):
        return json.loads(self.succeed(*args, **options).stdout)

    def fail_with(self, code, *args, contains=(), **options):
        """The command ends with this exit code and one line that holds all of `contains`."""
        result = clefkit(*args, **options)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("clefkit: "), result.stderr)
        for text in contains:
            self.assertIn(text, result.stderr)
        return result.stderr
