"""Run a resight command in a notebook, with this kernel's Python, and print what it prints."""

import os
import shlex
import subprocess
import sys


def run(command: str) -> None:
    """`run("resight info photos.resight")` is the same line as in a terminal."""
    print(f"$ {command}")
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "CLICOLOR_FORCE")}
    line = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(line, capture_output=True, text=True, encoding="utf-8", env={**plain, "PYTHONUTF8": "1"})
    print(done.stdout.rstrip())
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
