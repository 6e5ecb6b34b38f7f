"""The command, run in this process: `run("search", collection, image)` → exit code, stdout and stderr."""

import contextlib
import hashlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from resight.apps.cli import main


@dataclass(frozen=True)
class Ran:
    """What a run of the command gave back."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        """The JSON on stdout, after a run that went well."""
        assert self.code == 0, self.err
        return json.loads(self.out)


def run(*words: object) -> Ran:
    """`resight WORDS…`, errors turned into exit codes as on a terminal."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["resight", *map(str, words)])
        patch.setattr("resight.apps.terminal.EVERY", float("inf"))  # a slow machine prints no more than a fast one
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Ran(code, out.getvalue(), err.getvalue())


def state_of(folder: Path) -> dict[str, str]:
    """Every file below a folder and a hash of its bytes: equal states mean that nothing was changed."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
