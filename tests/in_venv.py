#!/usr/bin/env python3
"""Runs a Python script in a virtual environment with packages from PyPI, made where it is missing.

  in_venv.py ENVIRONMENT REQUIREMENT[,REQUIREMENT…] SCRIPT [ARGUMENT…]

Exits with 77, which CTest takes for "skipped", when the environment cannot be made (no network)."""
import pathlib
import subprocess
import sys

environment, requirements, *command = sys.argv[1:]
environment = pathlib.Path(environment)
python = environment / "bin" / "python"
stamp = environment / requirements.replace("/", "_")  # Says that exactly these are installed.
if not stamp.exists():
    steps = [[sys.executable, "-m", "venv", str(environment)],
             [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
              *requirements.split(",")]]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"skipped: {' '.join(step)}: {done.stderr.strip()[-500:]}")
            sys.exit(77)
    stamp.touch()
sys.exit(subprocess.run([str(python), *command]).returncode)
