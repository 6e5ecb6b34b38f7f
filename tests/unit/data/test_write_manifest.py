"""Data sets as manifests: what comes back, and what is refused."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from resight.data import sets
from resight.data.write_manifest import write_manifest
from resight.errors import ManifestError
from resight.types import Attribute, Dataset, ImageRef, Judgement


def make(
    *database: ImageRef, queries: tuple[ImageRef, ...] = (), judgements: Mapping[str, Judgement] | None = None
) -> Dataset:
    return Dataset("some", database, queries, judgements or {})


def image(id: str, **attributes: Attribute) -> ImageRef:
    return ImageRef(id, Path("photos") / id, attributes=attributes)


def round_trip(dataset: Dataset, path: Path) -> Dataset:
    write_manifest(dataset, path)
    return sets.build("manifest").load(path)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


GRADED = make(
    ImageRef(
        "a", Path("photos/a"), (1.5, 2, 30, 40.25), {"label": "7", "year": 1999, "share": 0.1, "lat": 1, "lon": 2}
    ),
    image("b c"),
    image("d", label="7"),
    queries=(image("q", label="7"), image("r", label="7")),
    judgements={
        "q": Judgement({"a": 2, "b c": 1}, frozenset({"d"}), {"a": (0.0, 0.0, 5.5, 6.0)}),
        "r": Judgement({}),
    },
)


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".json"])
def test_every_part_comes_back_from_json(suffix: str) -> None:
    found = round_trip(GRADED, Path(f"m{suffix}"))
    assert (found.database, found.queries, found.judgements) == (GRADED.database, GRADED.queries, GRADED.judgements)


def test_a_row_of_json_lines_is_plain() -> None:
    write_manifest(GRADED, Path("m.jsonl"))
    rows = [json.loads(line) for line in Path("m.jsonl").read_text().splitlines()]
    assert rows[1] == {"path": "photos/b c", "id": "b c", "role": "database"}
    assert rows[3] == {
        "path": "photos/q",
        "id": "q",
        "role": "query",
        "label": "7",
        "positives": {"a": 2, "b c": 1},
        "ignored": ["d"],
        "positive_boxes": {"a": [0.0, 0.0, 5.5, 6.0]},
    }
    assert rows[4]["positives"] == []


def test_csv_holds_ids_with_spaces_empty_positives_and_boxes() -> None:
    dataset = make(
        *GRADED.database,
        queries=GRADED.queries,
        judgements={
            "q": Judgement({"b c": 1}, frozenset({"d"}), {"b c": (0.5, 0.0, 5.5, 6.0)}),
            "r": Judgement({}),  # though its label has images
        },
    )
    found = round_trip(dataset, Path("m.csv"))
    assert (found.database, found.queries, found.judgements) == (dataset.database, dataset.queries, dataset.judgements)
    lines = Path("m.csv").read_text().splitlines()
    assert lines[0] == "path,id,role,box,label,year,share,lat,lon,positives,ignored,positive_boxes"
    assert lines[4] == "photos/q,q,query,,7,,,,,b c;,d,b c:0.5 0.0 5.5 6.0"
    assert lines[5].endswith(",;,,")


def test_an_image_that_is_also_a_query_is_one_row_and_orders_stay() -> None:
    both = image("b")
    dataset = make(
        image("a"),
        both,
        image("c"),
        queries=(image("p"), both, image("q")),
        judgements={"p": Judgement({"a": 1}), "b": Judgement({"c": 1}, frozenset({"b"})), "q": Judgement({"b": 1})},
    )
    written = write_manifest(dataset, Path("m.csv"))
    assert (written.database, written.queries, written.both, written.reordered) == (3, 3, 1, False)
    found = sets.build("manifest").load(Path("m.csv"))
    assert (found.database, found.queries, found.judgements) == (dataset.database, dataset.queries, dataset.judgements)


def test_two_orders_that_contradict_each_other_are_reported() -> None:
    a, b = image("a"), image("b")
    dataset = make(
        a,
        b,
        queries=(b, a),
        judgements={"a": Judgement({"b": 1}, frozenset({"a"})), "b": Judgement({"a": 1}, frozenset({"b"}))},
    )
    assert write_manifest(dataset, Path("m.jsonl")).reordered
    found = sets.build("manifest").load(Path("m.jsonl"))
    assert [ref.id for ref in found.queries] == ["a", "b"]
    assert found.judgements == dataset.judgements


def test_a_path_outside_the_manifests_folder_is_absolute(tmp_path: Path) -> None:
    Path("lists").mkdir()
    write_manifest(make(image("a")), Path("lists/m.csv"))
    assert f"{tmp_path}/photos/a,a" in Path("lists/m.csv").read_text()
    remote = ImageRef("s", Path("s3://bucket/s.jpg"))
    write_manifest(make(remote), Path("m.jsonl"))
    assert json.loads(Path("m.jsonl").read_text())["path"] == "s3://bucket/s.jpg"


def test_a_file_is_written_as_a_whole_or_not_at_all() -> None:
    Path("m.csv").write_text("path\nold.jpg\n")
    with pytest.raises(ManifestError):
        write_manifest(make(image("a"), image("b", night=True)), Path("m.csv"))
    assert Path("m.csv").read_text() == "path\nold.jpg\n"
    assert [path.name for path in Path.cwd().iterdir()] == ["m.csv"]


QUERY = {"q": Judgement({"a": 1})}


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (make(image("a", role="x")), "column of manifests"),
        (make(image("a", lat=1.0)), "half a position"),
        (make(ImageRef("a", Path("a"), unsaid=frozenset({"lat"}))), "hides attributes"),
        (make(image("a"), image("a")), "twice"),
        (make(image("a"), queries=(ImageRef("a", Path("b")),), judgements={"a": Judgement({})}), "another as a query"),
        (make(image("a"), queries=(image("a"),), judgements={"a": Judgement({})}), "neither ignored nor a positive"),
        (make(image("a"), queries=(image("q"),)), "judgements differ"),
        (make(image("b"), queries=(image("q"),), judgements=QUERY), "names no database image"),
        (make(image("a", label=3)), "the attributes of 'a'"),
        (make(image("a", share=float("nan"))), "JSON cannot hold"),
        (make(ImageRef("a", Path("a"), (5, 5, 5, 9))), "cannot hold 'a'"),
        (make(image("a"), queries=(image("q"),), judgements={"q": Judgement({"a": -1})}), "cannot hold 'q'"),
        (make(ImageRef("caf\udce9", Path("a"))), "UTF-8"),
    ],
)
def test_what_no_manifest_holds_is_refused_with_the_reason(dataset: Dataset, words: str) -> None:
    with pytest.raises(ManifestError, match=words) as refused:
        write_manifest(dataset, Path("m.jsonl"))
    assert refused.value.expected and refused.value.actual and refused.value.fix
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (make(image("a", night=True)), "night"),
        (make(image("a", frame="007"), image("b", frame="7")), "frame"),
        (make(image("a", text="")), "text"),
        (make(image(" a")), "the id"),
        (make(image("a", text=" x")), "the attributes"),
        (GRADED, "graded positives"),
        (make(image("a;b"), queries=(image("q"),), judgements={"q": Judgement({"a;b": 1})}), "a;b"),
        (
            make(
                *(image(f"{number:0100d}") for number in range(1500)),
                queries=(image("q"),),
                judgements={"q": Judgement({f"{number:0100d}": 1 for number in range(1500)})},
            ),
            "cannot hold 'q'",  # a cell of more than 131,072 letters
        ),
    ],
)
def test_what_csv_does_not_hold_is_refused_and_fits_into_json_lines(dataset: Dataset, words: str) -> None:
    with pytest.raises(ManifestError, match=words) as refused:
        write_manifest(dataset, Path("m.csv"))
    assert "JSON Lines" in refused.value.fix
    found = round_trip(dataset, Path("m.jsonl"))
    assert (found.database, found.judgements) == (dataset.database, dataset.judgements)


@pytest.mark.parametrize("path", ["m.txt", "m", "s3://bucket/m.csv"])
def test_other_endings_and_remote_files_are_refused(path: Any) -> None:
    with pytest.raises(ManifestError, match="cannot write a manifest"):
        write_manifest(make(image("a")), Path(path))
