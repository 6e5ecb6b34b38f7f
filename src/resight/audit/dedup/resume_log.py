"""The resume log of a verification: a run that was stopped continues from here.

One line of JSON per batch, written when the batch is done: the number of candidates processed, and the findings. A log
of other candidates is started over, and a truncated last line is dropped.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight.audit.dedup.candidates import Candidates
from resight.audit.dedup.verify import Finding, Registration
from resight.files.atomic import write_atomic
from resight.files.documents import load_json
from resight.files.fingerprint import fingerprint


@dataclass
class ResumeLog:
    path: Path
    done: int  # candidates
    findings: list[Finding]

    @classmethod
    def open(cls, path: Path, candidates: Candidates, *ids: Sequence[str]) -> "ResumeLog":
        key = fingerprint(repr(ids).encode() + candidates.rows.tobytes() + candidates.mirrored.tobytes())
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        log = cls(path, 0, [])
        if lines[:1] == [json.dumps({"candidates": key})]:
            for line in lines[1:]:
                if (batch := _parse(line)) is None:
                    break
                log.done, log.findings = batch["done"], [*log.findings, *map(_restore, batch["found"])]
        # Rewritten in either case, without a line that a killed process left half-written.
        with write_atomic(path) as temporary:
            begun = json.dumps({"candidates": key}) + "\n"
            temporary.write_text(begun + (_format_batch(log.done, log.findings) if log.done else ""), encoding="utf-8")
        return log

    def add(self, done: int, found: Sequence[Finding]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_format_batch(done, found))
        self.done = done
        self.findings.extend(found)


def _format_batch(done: int, found: Sequence[Finding]) -> str:
    return json.dumps({"done": done, "found": [_flatten(finding) for finding in found]}) + "\n"


def _parse(line: str) -> dict[str, Any] | None:
    try:
        batch: dict[str, Any] = load_json(line)
    except ValueError:
        return None
    return batch


def _flatten(finding: Finding) -> list[Any]:
    laid = finding.registration
    return [
        *(finding.a, finding.b, finding.mirrored, finding.inliers, finding.tentative, finding.perspective),
        *(laid.agreement, laid.share_a, laid.share_b, laid.region_a, laid.region_b),
    ]


def _restore(row: Sequence[Any]) -> Finding:
    agreement, share_a, share_b, region_a, region_b = row[6:]
    laid = Registration(agreement, share_a, share_b, tuple(region_a), tuple(region_b))
    a, b, mirrored, inliers, tentative, perspective = row[:6]
    return Finding(a, b, mirrored, inliers, tentative, perspective, laid)
