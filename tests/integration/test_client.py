"""`resight.Client` and `AsyncClient` against a real `resight serve`: the library's answers on the same collection."""

import asyncio
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support.scenes import draw_scene
from support.serving import Server, serve
from support.uploads import draw_jpeg

import resight
from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings
from resight.client.json_values import ServiceAnswer
from resight.collection.answer import Answer
from resight.errors import AccessDenied, CollectionError, ImageError, InputError, ServiceError
from resight.search.request import StoredImage

KEY = "a-key-of-twenty-letters"
# Operation of the HTTP API → the method of both clients that calls it.
METHODS = {
    "add_images": "add",
    "cancel_job": "cancel",
    "delete_images": "delete",
    "discard_uploads": "discard",
    "explain": "explain",
    "follow_job": "follow",
    "list_attributes": "attributes",
    "list_collections": "collections",
    "list_craters": "craters",
    "list_images": "records",
    "list_jobs": "jobs",
    "list_positions": "positions",
    "list_quarantine": "quarantine",
    "read_health": "health",
    "read_image": "find",
    "read_image_file": "picture",
    "read_job": "job",
    "retry_uploads": "retry",
    "search": "ask",
    "search_in_stages": "ask_in_stages",
    "update_image": "update",
}
REVIEWS = "a review is work for people, on the page; votes are exported as CSV"
PAGE = "only the page shows it"
LEFT_OUT = {
    "cast_vote": REVIEWS,
    "delete_image": "`delete` sends one id as it sends many",
    "explain_pair": REVIEWS,
    "export_votes": REVIEWS,
    "list_reports": PAGE,
    "list_reviews": REVIEWS,
    "list_trainings": PAGE,
    "read_agreement": REVIEWS,
    "read_metrics": "Prometheus reads its own format",
    "read_mosaic": PAGE,
    "read_next": REVIEWS,
    "read_pair_image": REVIEWS,
    "read_report": PAGE,
    "read_review": REVIEWS,
    "read_session": "a cookie is for the page; a client sends its key",
    "read_training": PAGE,
    "sign_in": "a cookie is for the page; a client sends its key",
    "sign_out": "a cookie is for the page; a client sends its key",
    "undo_vote": REVIEWS,
}


@pytest.fixture(scope="module")
def served(indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A service that wants a key, and its collection."""
    folder = tmp_path_factory.mktemp("served")
    keys = folder / "keys"
    keys.write_text(f"curator {KEY}\nreader {KEY}-reads read\n", encoding="utf-8")
    keys.chmod(0o600)
    collection = Path(shutil.copytree(indexed, folder / "scenes.resight"))
    with serve(collection, options=("--key-file", str(keys), "--show-paths", "--workers", "2")) as server:
        yield server, collection


@pytest.fixture
def photos(served: tuple[Server, Path]) -> Iterator[resight.Client]:
    with resight.Client(served[0].address, KEY) as client:
        yield client


@pytest.fixture
def library(served: tuple[Server, Path]) -> resight.Collection:
    return resight.open(served[1])


def check_same(ours: ServiceAnswer, theirs: Answer) -> None:
    """All that a hit holds; floats travel in full precision."""
    assert [hit.id for hit in ours] == [hit.id for hit in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert (one.path, one.box, one.located_by) == (other.path, other.box, other.located_by)
        assert (one.score, one.probability) == (other.score, other.probability)
        assert (one.attributes, one.other_boxes) == (other.attributes, other.other_boxes)
        assert one.stages == pytest.approx(dict(other.stages), rel=1e-12)
    assert isinstance(ours, Answer)
    assert (ours.verdict, ours.searched, ours.stage) == (theirs.verdict, theirs.searched, theirs.stage)
    assert dict(ours.sizes) == dict(theirs.sizes)
    assert (ours.query.size, ours.query.outline, ours.query.id) == (
        theirs.query.size,
        theirs.query.outline,
        theirs.query.id,
    )
    mine, its = ours.ranking, theirs.ranking
    assert (mine.scores.tolist(), mine.ids, mine.proof) == (its.scores.tolist(), its.ids, its.proof)
    assert (mine.boxes, mine.probabilities) == tuple(  # the library's also hold images that are no hits
        {id: known[id] for id in its.ids if id in known} for known in (its.boxes, its.probabilities)
    )


FORMS: dict[str, Callable[[Path], Any]] = {
    "path": lambda path: path,
    "text": str,
    "bytes": Path.read_bytes,
    "PIL": Image.open,
    "array": lambda path: np.asarray(Image.open(path)),
    "picture": resight.load_image,
    "part": lambda path: resight.ImageRef("part", path, box=(20, 20, 130, 110)),
    "stored": lambda _: StoredImage("scene_03.jpg"),
    "id": lambda _: "scene_03.jpg",
}


@pytest.mark.parametrize("form", FORMS)
def test_an_image_in_any_form_gives_the_answer_of_the_library(
    form: str, photos: resight.Client, library: resight.Collection, view: Path
) -> None:
    make = FORMS[form]
    ours, theirs = photos.ask(make(view), k=4), library.ask(make(view), k=4)
    if form in ("PIL", "array", "bytes", "picture", "part"):  # a name of its own
        theirs = Answer(
            **{**vars(theirs), "query": ours.query if ours.query.size == theirs.query.size else theirs.query}
        )
    check_same(ours, theirs)


def test_boxes_and_filters_are_those_of_the_library(
    photos: resight.Client, library: resight.Collection, view: Path
) -> None:
    box = (12.5, 20.25, 140.0, 110.0)
    check_same(photos.ask(view, k=3, box=box), library.ask(view, k=3, box=box))
    assert photos.update("scene_07.jpg", attributes={"year": 1911, "lat": 48.85, "lon": 2.29}).kind == "update"
    for job in photos.jobs():
        photos.wait(job)
    wanted: dict[str, Any] = {"where": ["year>=1900"], "near": (48.85, 2.29, 100.0)}
    found = photos.ask(view, **wanted)
    assert (len(found), found.searched) == (1, 1)
    check_same(found, library.ask(view, **wanted))
    assert found.position == library.ask(view, **wanted).position
    with pytest.raises(InputError, match="no image has"):
        photos.search(view, where=["yaer=1900"])
    with pytest.raises(InputError, match="k of 1 or more"):
        photos.search(view, k=0)


def test_a_hit_is_explained_as_by_the_library(photos: resight.Client, library: resight.Collection, view: Path) -> None:
    ours, theirs = photos.ask(view, k=1), library.ask(view, k=1)
    mine, its = ours.explain(ours[0]), theirs.explain(theirs[0])
    assert (mine.query_id, mine.image_id, mine.box, mine.located_by) == (
        its.query_id,
        its.image_id,
        its.box,
        its.located_by,
    )
    assert mine.match is not None and its.match is not None
    assert (mine.match.inliers, mine.match.tentative, mine.match.model) == (
        its.match.inliers,
        its.match.tentative,
        its.match.model,
    )
    np.testing.assert_array_equal(mine.match.transform, its.match.transform)
    assert mine.match.significance == its.match.significance
    assert mine.heat is not None and its.heat is not None
    np.testing.assert_allclose(mine.heat, its.heat, atol=1 / 255)
    assert photos.explain(ours, ours[0]).match.inliers == mine.match.inliers  # type: ignore[union-attr]
    assert ours[0].explain().size == ours[0].explain().size
    assert ours.show(1).width > 100
    assert ours.verdict in ours._repr_html_()
    with pytest.raises(InputError, match="not from a service"):
        photos.explain(theirs, theirs[0])  # type: ignore[arg-type]


def test_batches_stages_and_what_comes_back_can_be_searched_again(
    photos: resight.Client, library: resight.Collection, scenes: Path
) -> None:
    paths = sorted(scenes.glob("*.jpg"))[:5]
    seen: list[tuple[int, int]] = []
    ours = photos.ask(paths, k=2, progress=lambda done, total: seen.append((done, total)))
    for mine, path in zip(ours, paths, strict=True):
        check_same(mine, library.ask(path, k=2))
    assert seen == [(number, 5) for number in range(1, 6)]
    assert [hits[0].id for hits in photos.search(iter(paths[:2]), k=1)] == ["scene_00.jpg", "scene_01.jpg"]
    wrong = [paths[0], b"no image", paths[1]]
    found = photos.search(wrong, k=1, errors="return")
    assert isinstance(found[1], InputError) and found[2][0].id == "scene_01.jpg"
    with pytest.raises(InputError, match="image 2 of the batch"):
        photos.search(wrong, k=1)
    shortlist, answer = photos.ask_in_stages(paths[0], k=2)
    assert (shortlist.stage, answer.stage) == ("shortlist", "verified")
    assert [hit.id for hit in answer] == [hit.id for hit in ours[0]]
    check_same(photos.ask(ours[0].query, k=2), library.ask(paths[0], k=2))
    assert photos.search(ours[0][0], k=1)[0].id == "scene_00.jpg"


def test_its_images_are_those_of_the_library(photos: resight.Client, library: resight.Collection) -> None:
    assert (len(photos), sorted(photos)) == (len(library), sorted(library))
    for mine, its in zip(photos.records(), library.records(sorted(library)), strict=True):
        assert (mine.id, mine.path, mine.sha256, mine.size, mine.attributes) == (
            its.id,
            its.path,
            its.sha256,
            its.size,
            its.attributes,
        )
    assert "scene_01.jpg" in photos and "scene_99.jpg" not in photos and 3 not in photos
    assert photos["scene_01.jpg"].size == library["scene_01.jpg"].size
    assert photos.find("scene_99.jpg") is None
    with pytest.raises(CollectionError, match="no such image"):
        photos["scene_99.jpg"]
    view = library.view()
    assert photos.attributes() == view.attributes()
    assert photos.positions().ids == view.positions().ids
    assert len(photos.craters()) == len(view.craters())
    assert max(photos.picture("scene_01.jpg", side=96).size) <= 128
    (info,) = photos.collections()
    assert (info.name, info.images, info.writable) == ("scenes", len(library), True)
    assert photos.use("scenes").search("scene_01.jpg", k=1)
    with pytest.raises(CollectionError, match="no such collection"):
        photos.use("other").search("scene_01.jpg")
    health = photos.health()
    assert (health.status, health.ready, health.version) == ("ok", True, resight.__version__)


def test_images_are_added_followed_changed_and_deleted(
    photos: resight.Client, library: resight.Collection, tmp_path: Path
) -> None:
    for seed in (31, 32):
        (tmp_path / f"new_{seed}.jpg").write_bytes(draw_jpeg(seed))
    (tmp_path / "half.jpg").write_bytes(draw_jpeg(33)[:700])
    (tmp_path / "notes.txt").write_text("no image")
    seen: list[tuple[int, int]] = []
    report = photos.add(tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert (report.added, report.updated, report.unchanged, report.not_images) == (2, 0, 0, 1)
    assert [Path(one.path).name for one in report.skipped] == ["half.jpg"] and report.skipped[0].reason
    assert seen[-1] == (3, 3) and seen == sorted(seen)
    assert photos.add(tmp_path / "new_31.jpg").unchanged == 1
    labelled = resight.ImageRef("labelled", tmp_path / "new_31.jpg", attributes={"label": "gate"})
    memory = {"pixels": draw_scene(34, 160, 120), "bytes": draw_jpeg(35)}
    assert photos.add([labelled], memory).added == 3
    assert photos["labelled"].attributes["label"] == "gate"
    assert photos.search(draw_scene(34, 160, 120), k=1)[0].id == "pixels"
    assert {"labelled", "pixels", "bytes"} <= set(library)
    (job,) = photos.submit({"late": draw_jpeg(36)})
    states = [latest.state for latest in photos.follow(job)]
    assert states[-1] == "done" and photos.job(job).added == 1 and photos.cancel(job).state == "done"
    assert photos.quarantine() == () and photos.retry(["unknown"]) == 0 and photos.discard(["unknown"]) == 0
    ids = ["labelled", "pixels", "bytes", "late", "new_31.jpg", "new_32.jpg", "unknown"]
    assert photos.delete(ids) == 6 and photos.delete("unknown") == 0


def test_what_cannot_be_added_is_refused_before_it_is_sent(photos: resight.Client, scenes: Path) -> None:
    twice = [scenes / "scene_00.jpg", scenes / "scene_00.jpg"]
    with pytest.raises(InputError, match="would both be called 'scene_00"):
        photos.add(twice)
    with pytest.raises(InputError, match="whole images"):
        photos.add([resight.ImageRef("part", scenes / "scene_00.jpg", box=(0, 0, 50, 50))])
    report = photos.add({"half": draw_jpeg(1)[:500]})
    assert report.added == 0 and report.skipped[0].path == "half" and report.skipped[0].reason


def test_errors_are_those_of_the_library_in_the_words_of_the_service(
    served: tuple[Server, Path], photos: resight.Client, view: Path
) -> None:
    address = served[0].address
    with resight.Client(address) as nobody, pytest.raises(AccessDenied) as denied:
        nobody.search(view)
    assert denied.value.fix and any("HTTP 401" in note for note in denied.value.__notes__)
    with resight.Client(address) as nobody:
        assert nobody.health().images is None
    with resight.Client(address, f"{KEY}-reads") as reader, pytest.raises(AccessDenied):
        reader.delete("scene_00.jpg")
    with pytest.raises(ImageError, match="no such file, and no image of the collection"):
        photos.search("nowhere.jpg")
    with pytest.raises(InputError, match="cannot read"):
        photos.search(b"no image")
    with pytest.raises(ImageError, match="there is no such file"):
        photos.search(Path("nowhere.jpg"))
    with pytest.raises(InputError, match="no address"):
        resight.Client("localhost:8080")
    with pytest.raises(ServiceError, match="does not answer like resight"), resight.Client(address) as page:
        page._run(iter_page())
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with resight.Client(gone, retries=0) as none, pytest.raises(ServiceError, match="does not answer"):
            none.health()


def iter_page() -> Any:
    """Steps that read the page, which is no JSON."""
    from resight.client.transport import Call

    return (yield Call("GET", "/"))


def test_the_same_awaited(served: tuple[Server, Path], library: resight.Collection, scenes: Path, view: Path) -> None:
    paths = sorted(scenes.glob("*.jpg"))[:5]

    async def use() -> None:
        async with resight.AsyncClient(served[0].address, KEY) as photos:
            answer = await photos.ask(view, k=3)
            check_same(answer, library.ask(view, k=3))
            evidence = await photos.explain(answer, answer[0])
            assert evidence.match is not None and evidence.match.inliers > 10
            with pytest.raises(InputError, match=r"await client\.explain"):
                answer.explain(answer[0])
            assert answer.verdict in answer._repr_html_()
            assert [hits[0].id for hits in await photos.search(paths, k=1)] == [path.name for path in paths]
            found = await photos.search([paths[0], b"no image"], k=1, errors="return")
            assert isinstance(found[1], InputError)
            with pytest.raises(InputError, match="image 2 of the batch"):
                await photos.search([paths[0], b"no image"], k=1)
            assert [one.stage async for one in photos.ask_in_stages(view)] == ["shortlist", "verified"]
            report = await photos.add({"awaited": draw_jpeg(41)})
            assert (report.added, report.skipped) == (1, ())
            (job,) = await photos.submit({"followed": draw_jpeg(42)})
            assert [one.is_over async for one in photos.follow(job)][-1]
            assert (await photos.wait(job)).added == 1
            assert await photos.count() == len(library) == len([record async for record in photos.records()])
            job = await photos.update("awaited", attributes={"year": 1911})
            assert (await photos.wait(job)).updated == 1
            record = await photos.find("awaited")
            assert record is not None and record.attributes == {"year": 1911}
            assert (await photos.picture("awaited")).size == (160, 120)
            assert {one.name for one in await photos.attributes()} >= {"year"}
            assert (await photos.positions()).ids == library.view().positions().ids
            assert len(await photos.craters()) == 0
            assert (await photos.collections())[0].name == "scenes"
            assert (await photos.health()).status == "ok"
            assert (await photos.job(job)) in await photos.jobs()
            assert (await photos.cancel(job)).state == "done"
            assert await photos.quarantine() == () and await photos.retry(["x"]) == await photos.discard(["x"]) == 0
            assert await photos.delete(["awaited", "followed"]) == 2
            assert await photos.use("scenes").find("scene_99.jpg") is None

    asyncio.run(use())


def test_every_operation_has_a_method_or_a_reason() -> None:
    described = create_app(ServiceSettings(collections={})).openapi()
    operations = {one["operationId"] for methods in described["paths"].values() for one in methods.values()}
    assert operations == METHODS.keys() | LEFT_OUT.keys()
    assert not METHODS.keys() & LEFT_OUT.keys()
    for kind in (resight.Client, resight.AsyncClient):
        assert [name for name in METHODS.values() if not callable(getattr(kind, name, None))] == []
