"""A log of results, one line of JSON each: a run that was stopped continues from here.

The first line holds a key of everything that the results depend on. A log with another key is started over, and a
truncated last line is dropped.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight.files.atomic import write_atomic
from resight.files.documents import load_json


@dataclass
class LineLog:
    path: Path
    lines: list[Any]  # results of earlier runs

    @classmethod
    def open(cls, path: Path, key: str) -> "LineLog":
        """`key`: for instance the fingerprint of ids, states and settings."""
        texts = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        begun = json.dumps({"key": key})
        known: list[Any] = []
        for text in texts[1:] if texts[:1] == [begun] else []:
            try:
                known.append(load_json(text))
            except ValueError:
                break
        # Rewritten in either case, without a line that a killed process left half-written.
        with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in [begun, *map(json.dumps, known)])
        return cls(path, known)

    def add(self, *results: Any) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(result)}\n" for result in results)
