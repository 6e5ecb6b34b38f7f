"""`resight.judge(...)`: judge a run in any form; runs and truths as dictionaries, data frames, files.

    a run      {query: [ids, best first]}, {query: {id: score}}, {query: Answer or hits}, a TREC run file, a Run of
               ranx, a frame with the columns query, image and score, or a list of (query, ids, scores)
    a truth    {query: [ids]}, {query: {id: grade}}, {query: Judgement}, TREC qrels, Qrels of ranx, a frame with the
               columns query, image and grade, a Dataset, a manifest, or a data set ("gldv2:ROOT")

A grade above 0 is a positive; an image with a grade below 0 is ignored. Ids are texts: numbers are converted. Columns
of frames may have the names that ranx, ir_measures and pytrec_eval use. Nothing here imports ranx, pandas or polars.
`resight.evaluate.judge` judges one query; this judges a run.
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resight.collection.image_list import MANIFESTS
from resight.data import sets
from resight.data.set_source import parse_source
from resight.errors import InputError
from resight.evaluate import trec
from resight.evaluate.judge_runs import JudgedRun, Missing, ScoredRanking, judge_rankings
from resight.frames import is_frame, read_frame
from resight.types import Dataset, Judgement

METRICS = ("ap", "recall@1", "recall@10", "precision@10")
QUERY = ("query", "query_id", "qid", "q_id")
IMAGE = ("image", "image_id", "doc_id", "docid", "docno", "doc", "id")
SCORE = ("score", "similarity", "sim")
GRADE = ("grade", "relevance", "rel", "score")
RANK = ("rank",)
SEED = 0


def judge(
    run: Any,
    truth: Any,
    metrics: Sequence[str] = METRICS,
    *,
    known: Container[str] | None = None,
    missing: Missing = "refuse",
) -> JudgedRun:
    """Judge the rankings of any system against the ground truth. `resight.evaluate.judge` judges a single query.

    Args:
        run: {query: ids, best first}, {query: {id: score}}, {query: Answer or hits}, a TREC run file, a Run of ranx, a
            data frame with the columns query, image and score, or (query, ids, scores) per query.
        truth: {query: ids}, {query: {id: grade}}, {query: Judgement}, TREC qrels, Qrels of ranx, a data frame with the
            columns query, image and grade, a Dataset, a manifest, or a data set ("gldv2:ROOT").
        metrics: Names of metrics, such as "ap", "recall@1", "easy/ap" or "uap".
        known: The ids of the database; a ranking with another id is refused. Default: those of the truth, if it is a
            data set.
        missing: What to do about a query with positives that the run lacks: "refuse", "zero" (it counts as an empty
            ranking) or "leave" (it is left out).

    Returns:
        Figures with intervals, and values per query.

    Raises:
        InputError: The run or the truth has another form, or the run lacks a query.
        ManifestError: A file breaks its format.
        RecipeError: A metric is unknown.

    Examples:
        >>> import resight
        >>> run = {"q1": ["a", "b"], "q2": {"a": 0.9, "b": 0.4}}
        >>> judged = resight.judge(run, {"q1": ["a"], "q2": {"b": 1}}, ["ap", "recall@1"])
        >>> judged.figures["ap"].value, judged.values["q2"]["recall@1"]
        (0.75, 0.0)
        >>> print(judged.to_latex().splitlines()[-4].split("&")[0].strip())
        ap
    """
    dataset = find_dataset(truth)
    judgements = dataset.judgements if dataset else read_truth(truth)
    if known is None and dataset and dataset.database:
        known = frozenset(ref.id for ref in dataset.database)
    generator = np.random.default_rng(SEED)
    return judge_rankings(read_run(run), judgements, list(metrics), generator, known=known, missing=missing)


def is_run(value: object) -> bool:
    """Whether this is a run rather than recipes or a collection."""
    if isinstance(value, (Mapping, trec.RunFile)) or is_frame(value) or _is_of_ranx(value):
        return True
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(one, (tuple, list)) for one in value)
    return isinstance(value, (str, Path)) and Path(value).suffix in (".run", ".trec", ".txt") and Path(value).is_file()


def find_dataset(given: Any) -> Dataset | None:
    """The data set that is given, or that a text or a manifest names; None: a truth in another form."""
    if isinstance(given, Dataset):
        return given
    if not isinstance(given, (str, Path)):
        return None
    source = parse_source(str(given))
    if source is not None:
        return source.load()
    path = Path(given)
    return sets.build("manifest").load(path) if path.suffix.lower() in MANIFESTS else None


def read_run(given: Any) -> Iterable[ScoredRanking]:
    """Per query its ids, best first, and their scores if there are any."""
    if isinstance(given, (str, Path)):
        return trec.open_run(Path(given))
    if _is_of_ranx(given):
        given = given.to_dict()
    if is_frame(given):
        return _read_run_frame(read_frame(given))
    if isinstance(given, Mapping):
        return [(str(query), *_read_ranking(query, ranked)) for query, ranked in given.items()]
    if isinstance(given, Iterable):
        return given if isinstance(given, trec.RunFile) else [_check_ranking(one) for one in given]
    raise _refuse("run", "a dictionary, a data frame, a run of ranx, or a TREC run file", given)


def read_truth(given: Any) -> dict[str, Judgement]:
    """Query → its judgement."""
    if isinstance(given, (str, Path)):
        return trec.read_qrels(Path(given))
    if _is_of_ranx(given):
        given = given.to_dict()
    if is_frame(given):
        columns = read_frame(given)
        queries, images = _find(columns, QUERY, "truth"), _find(columns, IMAGE, "truth")
        graded = next((columns[name] for name in GRADE if name in columns), [1] * len(queries))
        given = {}
        for query, image, grade in zip(queries, images, graded, strict=True):
            given.setdefault(query, {})[image] = grade
    if isinstance(given, Mapping):
        return {str(query): _read_judgement(query, judged) for query, judged in given.items()}
    raise _refuse("truth", "a dictionary, a data frame, Qrels of ranx, TREC qrels, or a data set", given)


def _is_of_ranx(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "ranx" and hasattr(value, "to_dict")


def _read_ranking(query: object, ranked: Any) -> tuple[list[str], list[float] | None]:
    """Ids, best first, and their scores."""
    ranked = getattr(ranked, "hits", ranked)  # of an Answer
    if isinstance(ranked, Mapping):
        scored = ((str(id), _read_number(query, id, score)) for id, score in ranked.items())
        pairs = sorted(scored, key=lambda pair: -pair[1])
        return [id for id, _ in pairs], [score for _, score in pairs]
    if isinstance(ranked, str) or not isinstance(ranked, Iterable):
        raise _refuse(f"ranking of {query!r}", "ids, best first, or id → score", ranked)
    answers = list(ranked)
    if answers and all(hasattr(one, "id") and hasattr(one, "score") for one in answers):
        return [one.id for one in answers], [_read_number(query, one.id, one.score) for one in answers]
    if answers and all(isinstance(one, (tuple, list)) and len(one) == 2 for one in answers):
        return [str(id) for id, _ in answers], [_read_number(query, id, score) for id, score in answers]
    return [str(one) for one in answers], None


def _check_ranking(given: Any) -> ScoredRanking:
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        raise _refuse("ranking", "(query, ids, scores) per query", given)
    query, ids, *scores = given
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise _refuse(f"ranking of {query!r}", "ids, best first", ids)
    return str(query), [str(one) for one in ids], scores[0] if scores else None


def _read_run_frame(columns: Mapping[str, list[Any]]) -> list[ScoredRanking]:
    queries, images = _find(columns, QUERY, "run"), _find(columns, IMAGE, "run")
    scores = next((columns[name] for name in SCORE if name in columns), None)
    ranks = next((columns[name] for name in RANK if name in columns), list(range(len(queries))))
    rows: dict[str, list[tuple[float, float, str]]] = {}
    for number, (query, image, rank) in enumerate(zip(queries, images, ranks, strict=True)):
        score = _read_number(query, image, scores[number]) if scores else 0.0
        rows.setdefault(str(query), []).append((-score, _read_number(query, image, rank, "rank"), str(image)))
    return [
        (query, [image for *_, image in ordered], [-minus for minus, *_ in ordered] if scores else None)
        for query, found in rows.items()
        for ordered in [sorted(found, key=lambda row: row[:2])]
    ]


def _read_number(query: object, id: object, value: Any, what: str = "score") -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):  # NaN has no place in an order
        raise InputError(
            f"the {what} of {id!r} for the query {query!r} cannot be used",
            expected="a finite number",
            actual=repr(value)[:80],
            fix="correct it, or leave the image out",
        )
    return number


def _find(columns: Mapping[str, list[Any]], names: Sequence[str], what: str) -> list[Any]:
    for name in names:
        if name in columns:
            return columns[name]
    raise InputError(
        f"the frame of the {what} has no column {names[0]!r}",
        expected=f"one called {', '.join(names)}",
        actual=", ".join(columns),
        fix="rename the columns: query, image, and score (a run) or grade (a truth)",
    )


def _read_judgement(query: object, judged: Any) -> Judgement:
    if isinstance(judged, Judgement):
        return judged
    if isinstance(judged, str):
        judged = [judged]
    if not isinstance(judged, Iterable):
        raise _refuse(f"truth of {query!r}", "ids, or id → grade", judged)
    graded = judged if isinstance(judged, Mapping) else dict.fromkeys(judged, 1)
    grades = {str(id): _read_grade(query, id, grade) for id, grade in graded.items()}
    return Judgement(
        {id: grade for id, grade in grades.items() if grade >= 0},
        frozenset(id for id, grade in grades.items() if grade < 0),
    )


def _read_grade(query: object, id: object, grade: Any) -> int:
    try:
        if math.isfinite(grade) and grade == int(grade):
            return int(grade)
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"the grade of {id!r} for the query {query!r} cannot be used",
        expected="a whole number: above 0 for a positive, below 0 to ignore the image",
        actual=repr(grade),
        fix="correct it",
    )


def _refuse(what: str, expected: str, given: object) -> InputError:
    return InputError(
        f"this is no {what}", expected=expected, actual=f"{type(given).__name__}: {repr(given)[:80]}", fix="convert it"
    )
