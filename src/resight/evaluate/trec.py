"""TREC run files and qrels: rankings and judgements in the format of trec_eval, read and written.

    run     query Q0 image rank score tag       one line for each image of each ranking
    qrels   query 0 image grade                 one line for each judged pair

Conventions:

- White space separates fields. In a line with as many tabs as the format has gaps, only tabs separate them, so that
  ids may hold spaces; `write_run` writes such lines for such ids. Empty lines are skipped.
- A ranking is ordered by score, highest first; equal scores by rank, then by their order in the file. (trec_eval, which
  ignores ranks, orders equal scores by id.)
- A grade above 0 is a positive, 0 is not, and an image with a grade below 0 is ignored: it leaves the ranking.
- Lines of a query may be anywhere in the file. Memory holds only their offsets, 24 bytes for each stretch of lines of
  the same query: a sorted file takes next to nothing, a shuffled one 24 bytes per line.

Errors give the number of the line. `RunRecorder` collects the rankings of an evaluation and writes them as run files,
which `resight judge` reads.
"""

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError, ManifestError
from resight.files.atomic import write_atomic
from resight.types import FloatArray, Judgement, Recipe

RUN = ("query", "Q0", "image", "rank", "score", "tag")
QRELS = ("query", "0", "image", "grade")
IGNORED = -1  # grade that `write_qrels` writes for ignored images
DEPTH = 1000  # answers per query that RunRecorder keeps
BOM = b"\xef\xbb\xbf"

ScoredIds = tuple[str, Sequence[str], NDArray[np.float64]]  # query, ids best first, their scores


@dataclass(frozen=True)
class RunFile:
    """A run file; each iteration reads the rankings one query at a time."""

    path: Path
    stretches: "dict[str, array[int]]" = field(repr=False)  # query → offset, bytes and first line of each stretch

    def __iter__(self) -> Iterator[ScoredIds]:
        for query in self.stretches:
            yield self.read(query)

    def __len__(self) -> int:
        return len(self.stretches)

    def read(self, query: str) -> ScoredIds:
        """Query, ids best first, and their scores [n] float64."""
        lines = list(self._lines(query))
        ids = [line[0] for line in lines]
        scores = np.array([line[2] for line in lines])
        order = np.lexsort((np.array([line[1] for line in lines]), -scores))  # stable: then by their order in the file
        _refuse_duplicates(self.path, query, ids, [line[3] for line in lines])
        return query, [ids[number] for number in order], scores[order]

    def _lines(self, query: str) -> Iterator[tuple[str, int, float, int]]:
        """Image, rank, score and line number."""
        stretches = self.stretches[query]
        with self.path.open("rb") as file:
            for start in range(0, len(stretches), 3):
                offset, length, line = stretches[start : start + 3]
                file.seek(offset)
                for number, text in enumerate(file.read(length).split(b"\n"), start=line):
                    if text.strip():
                        fields = _split(self.path, number, text, RUN)
                        if fields[0] != query:
                            _refuse_line(
                                self.path, number, f"fields separated as before, of {query!r}", repr(fields[0])
                            )
                        yield fields[2], *_read_rank(self.path, number, fields), number


def open_run(path: Path) -> RunFile:
    """Find each query's lines; `RunFile.read` reads and checks them."""
    stretches: dict[str, array[int]] = {}
    stretch, offset, mark = array("q"), 0, b""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.removeprefix(BOM) if number == 1 else line
                start, offset = offset + len(line) - len(text), offset + len(line)
                if text.strip():
                    if not (mark and text.startswith(mark) and (mark[-1:] == b"\t" or b"\t" not in text)):
                        query = _split(path, number, text, RUN)[0]
                        mark = _mark(query, text)
                        stretch = stretches.setdefault(query, array("q"))
                        stretch.extend((start, 0, number))
                    stretch[-2] = offset - stretch[-3]
    except OSError as error:
        raise _refuse_file(path, error) from error
    if not stretches:
        raise ManifestError(f"{path} holds no ranking", expected=" ".join(RUN), actual="no line", fix="give a run file")
    return RunFile(path, stretches)


def write_run(path: Path, rankings: Iterable[tuple[str, Sequence[str], ArrayLike]], tag: str = "resight") -> int:
    """Write rankings (query, ids best first, their scores) as they come; returns their number.

    Scores must not increase along a ranking. They are written in full, so that reading returns the same numbers.
    """
    written = 0

    def lines() -> Iterator[str]:
        nonlocal written
        for query, ids, scores in rankings:
            numbers = np.asarray(scores, dtype=np.float64)
            if numbers.shape != (len(ids),) or not np.isfinite(numbers).all() or (numbers[1:] > numbers[:-1]).any():
                raise InputError(
                    f"the ranking of {query!r} cannot be written",
                    expected=f"{len(ids)} finite scores, best first",
                    actual=f"shape {numbers.shape}",
                    fix="give one score for each id, not increasing",
                )
            for rank, (id, score) in enumerate(zip(ids, numbers.tolist(), strict=True), start=1):
                yield _format((query, "Q0", id, str(rank), repr(score), tag))
            written += 1

    _write(path, lines())
    return written


def read_qrels(path: Path) -> dict[str, Judgement]:
    """Query → its judgement."""
    grades: dict[str, dict[str, int]] = {}
    lines: dict[tuple[str, str], int] = {}
    try:
        content = path.read_bytes().removeprefix(BOM)
    except OSError as error:
        raise _refuse_file(path, error) from error
    for number, text in enumerate(content.split(b"\n"), start=1):
        if not text.strip():
            continue
        query, _, id, grade = _split(path, number, text, QRELS)
        if (query, id) in lines:
            _refuse_line(path, number, "each pair judged once", f"{query} {id}, as in line {lines[query, id]}")
        lines[query, id] = number
        try:
            grades.setdefault(query, {})[id] = int(grade)
        except ValueError:
            _refuse_line(path, number, "a whole number as the grade", repr(grade))
    if not grades:
        raise ManifestError(f"{path} judges nothing", expected=" ".join(QRELS), actual="no line", fix="give qrels")
    return {
        query: Judgement(
            {id: grade for id, grade in judged.items() if grade >= 0},
            frozenset(id for id, grade in judged.items() if grade < 0),
        )
        for query, judged in grades.items()
    }


def write_qrels(path: Path, judgements: Iterable[tuple[str, Judgement]]) -> None:
    """Leaves out boxes, which the format cannot hold."""
    _write(
        path,
        (
            _format((query, "0", id, str(grade)))
            for query, judgement in judgements
            for id, grade in ({**judgement.grades, **dict.fromkeys(sorted(judgement.ignored), IGNORED)}).items()
        ),
    )


class RunRecorder:
    """Collects the first DEPTH answers of every query, by recipe."""

    def __init__(self) -> None:
        self._rankings: dict[str, list[tuple[str, Sequence[str], Sequence[float]]]] = {}

    def add(self, recipe: Recipe, query: str, ids: Sequence[str], scores: FloatArray) -> None:
        self._rankings.setdefault(recipe.name, []).append((query, ids[:DEPTH], scores[:DEPTH].tolist()))

    def write(self, path: Path) -> tuple[Path, ...]:
        """The written files: `path` itself, or one file per recipe in the folder `path` if there are several."""
        written = []
        for name, rankings in self._rankings.items():
            tag = re.sub(r"[^\w.+-]+", "_", name).strip("_")
            file = path / f"{tag}.run" if len(self._rankings) > 1 else path
            file.parent.mkdir(parents=True, exist_ok=True)
            write_run(file, rankings, tag=tag)
            written.append(file)
        return tuple(written)


def _write(path: Path, lines: Iterable[str]) -> None:
    with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _format(fields: Sequence[str]) -> str:
    line = " ".join(fields)
    plain = line.split() == list(fields) and line[0] != "\ufeff"
    return line if plain else _join(fields)


def _join(fields: Sequence[str]) -> str:
    """Joined by tabs, for fields that hold spaces."""
    if fields[0].startswith("\ufeff") or not all(fields) or any(set(text) & set("\t\r\n") for text in fields):
        raise InputError(
            f"{fields[0]!r} and {fields[2]!r} cannot be written to a TREC file",
            expected="ids and tags that are not empty, without tabs and line breaks",
            actual=repr(tuple(fields)),
            fix="rename them",
        )
    return "\t".join(fields)


def _mark(query: str, line: bytes) -> bytes:
    """Prefix shared by all lines of the query, for a fast check; empty if there is none."""
    name = query.encode()
    gap = line[len(name) : len(name) + 1]
    return name + gap if line.startswith(name) and gap in (b" ", b"\t") else b""


def _split(path: Path, number: int, line: bytes, columns: Sequence[str]) -> list[str]:
    text = line.rstrip(b"\r\n")
    # Bytes, not text: only ASCII white space separates fields; ids may hold any other.
    fields = text.split(b"\t") if text.count(b"\t") == len(columns) - 1 else text.split()
    if len(fields) != len(columns) or not all(fields):
        _refuse_line(path, number, f"{len(columns)} fields: {' '.join(columns)}", f"{len(fields)} in {text[:80]!r}")
    try:
        return [part.decode() for part in fields]
    except UnicodeDecodeError as error:
        _refuse_line(path, number, "UTF-8", str(error))


def _read_rank(path: Path, number: int, fields: Sequence[str]) -> tuple[int, float]:
    try:
        rank, score = int(fields[3]), float(fields[4])
    except ValueError:
        _refuse_line(path, number, "a whole number as the rank, a number as the score", " ".join(fields[3:5]))
    if not math.isfinite(score):
        _refuse_line(path, number, "a finite score", fields[4])
    return rank, score


def _refuse_duplicates(path: Path, query: str, ids: Sequence[str], numbers: Sequence[int]) -> None:
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for id, number in zip(ids, numbers, strict=True):
        if id in first:
            _refuse_line(path, number, f"each image once for {query!r}", f"{id!r}, as in line {first[id]}")
        first[id] = number


def _refuse_line(path: Path, number: int, expected: str, actual: str) -> NoReturn:
    raise ManifestError(f"{path}, line {number}", expected=expected, actual=actual, fix="correct the line")


def _refuse_file(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be read", expected="a text file", actual=str(error), fix="check the path")
