"""The routes of reviews, against a small collection."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from support.scenes import draw_scene, look_at, write_jpeg, write_scenes

from resight.apps.service.api_keys import make_key
from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings
from resight.audit.dedup.pairs import Pair
from resight.audit.review.review import Review
from resight.collection import open_collection

KEY = "k" * 20
PAIRS = [
    Pair("view.jpg", "scene_01.jpg", "same", 0.97),
    Pair("view.jpg", "scene_02.jpg", "same", 0.55),
    Pair("view.jpg", "gone.jpg", "near_copy", 0.99),
]


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("reviewed")
    write_scenes(folder / "scenes", 3)
    (folder / "views").mkdir()
    write_jpeg(folder / "views" / "view.jpg", look_at(draw_scene(1)))
    for name in ("views", "scenes"):
        open_collection(folder / f"{name}.resight", "sift").add(folder / name)
    return folder / "views.resight", folder / "scenes.resight"


@pytest.fixture(scope="module")
def review(collections: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Review:
    return Review.create(tmp_path_factory.mktemp("reviews") / "leaks", "Leaks", *collections, PAIRS)


@pytest.fixture(scope="module")
def client(collections: tuple[Path, Path], review: Review, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """With a second review of the same folder name, which shows what the machine thinks."""
    shown = Review.create(tmp_path_factory.mktemp("shown") / "leaks", "Shown", *collections, PAIRS, blind=False)
    settings = ServiceSettings({"scenes": collections[1]}, reviews=(review.folder, shown.folder))
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as made:
        yield made


def test_reviews_of_the_same_name_are_told_apart(client: Any) -> None:
    assert client.get("/api/reviews").json() == [
        {"name": "leaks", "title": "Leaks", "pairs": 3},
        {"name": "leaks-2", "title": "Shown", "pairs": 3},
    ]


def test_a_vote_is_kept_and_tells_what_the_machine_thinks(client: Any, review: Review) -> None:
    first = client.get("/api/reviews/leaks/next", params={"reviewer": "Kim"}).json()
    assert (first["pair"]["number"], first["pair"]["probability"], first["pair"]["kind"]) == (2, None, None)
    voted = client.post("/api/reviews/leaks/votes", json={"reviewer": "Kim", "pair": 2, "verdict": "different"})
    assert voted.status_code == 201
    assert voted.json()["machine"] == {"probability": 0.55, "kind": "same"}
    assert voted.json()["progress"] == {"total": 3, "voted": 1, "skipped": 0, "left": 2, "counts": {"different": 1}}
    assert [vote.verdict for vote in review.list_votes() if vote.reviewer == "Kim"] == ["different"]
    assert client.get("/api/reviews/leaks/next", params={"reviewer": "Kim"}).json()["pair"]["number"] == 1
    undone = client.post("/api/reviews/leaks/undo", json={"reviewer": "Kim"}).json()
    assert (undone["pair"]["number"], undone["progress"]["voted"]) == (2, 0)
    assert client.post("/api/reviews/leaks/undo", json={"reviewer": "Kim"}).json()["pair"] is None


def test_an_undo_that_is_sent_again_takes_no_second_vote_back(client: Any) -> None:
    for number in (1, 3):
        client.post("/api/reviews/leaks/votes", json={"reviewer": "Una", "pair": number, "verdict": "same"})
    assert client.get("/api/reviews/leaks/next", params={"reviewer": "Una"}).json()["last"] == 3
    for _ in range(2):
        undone = client.post("/api/reviews/leaks/undo", json={"reviewer": "Una", "pair": 3}).json()
        assert (undone["pair"]["number"], undone["last"], undone["progress"]["voted"]) == (3, 1, 1)


def test_a_review_that_is_not_blind_shows_probabilities(client: Any) -> None:
    pair = client.get("/api/reviews/leaks-2/next", params={"reviewer": "Kim"}).json()["pair"]
    assert (pair["probability"], pair["kind"]) == (0.55, "same")


def test_evidence_joins_the_same_points_of_both(client: Any) -> None:
    why = client.get("/api/reviews/leaks/why", params={"pair": 1}).json()
    assert why["match"]["inliers"] > 30
    assert why["probability"] is None
    assert why["sizes"] == {"query": [400, 300], "image": [480, 360]}
    assert client.get("/api/reviews/leaks/why", params={"pair": 2}).json()["match"] is None


def test_pictures_are_reencoded_and_need_not_be_sent_twice(client: Any) -> None:
    where = {"pair": 1, "side": "b", "size": 300}
    answer = client.get("/api/reviews/leaks/picture", params=where)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")
    again = client.get("/api/reviews/leaks/picture", params=where, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_an_image_that_is_gone_leaves_the_pair_to_be_skipped(client: Any) -> None:
    for number in (1, 2):
        client.post("/api/reviews/leaks/votes", json={"reviewer": "Lee", "pair": number, "verdict": "same"})
    pair = client.get("/api/reviews/leaks/next", params={"reviewer": "Lee"}).json()["pair"]
    assert (pair["b"]["id"], pair["b"]["size"]) == ("gone.jpg", None)
    for path in ("/api/reviews/leaks/why?pair=3", "/api/reviews/leaks/picture?pair=3&side=b"):
        assert client.get(path).status_code == 404
    assert client.post("/api/reviews/leaks/votes", json={"reviewer": "Lee", "pair": 3, "verdict": "skip"}).is_success


def test_votes_are_exported_and_agreement_is_told(client: Any) -> None:
    for reviewer, verdict in (("Ann", "same"), ("Ben", "same")):
        client.post("/api/reviews/leaks-2/votes", json={"reviewer": reviewer, "pair": 1, "verdict": verdict})
    agreement = client.get("/api/reviews/leaks-2/agreement").json()
    assert agreement["two"] == [{"first": "Ann", "second": "Ben", "pairs": 1, "agreed": 1, "kappa": None}]
    table = client.get("/api/reviews/leaks-2/votes.csv")
    assert table.headers["content-disposition"] == 'attachment; filename="votes.csv"'
    assert table.text.splitlines()[0] == "pair,a,b,reviewer,verdict,at"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/reviews/none", None, 404),
        ("GET", "/api/reviews/leaks/next", None, 422),
        ("GET", "/api/reviews/leaks/next?reviewer=%3D1", None, 400),
        ("GET", "/api/reviews/leaks/next?reviewer=Kim&speed=9", None, 422),
        ("GET", "/api/reviews/leaks/why?pair=0", None, 404),
        ("GET", f"/api/reviews/leaks/why?pair={10**30}", None, 404),
        ("GET", "/api/reviews/leaks/picture?pair=1&side=c", None, 422),
        ("POST", "/api/reviews/leaks/votes", {"reviewer": "Kim", "pair": 4, "verdict": "same"}, 404),
        ("POST", "/api/reviews/leaks/votes", {"reviewer": "Kim", "pair": 1, "verdict": "maybe"}, 422),
        ("POST", "/api/reviews/leaks/votes", {"reviewer": "Kim", "pair": 1, "verdict": "same", "x": 1}, 422),
        ("POST", "/api/reviews/leaks/votes", {"reviewer": "\ud800", "pair": 1, "verdict": "same"}, 422),
        ("POST", "/api/reviews/leaks/undo", {}, 422),
        ("POST", "/api/reviews/leaks/undo", {"reviewer": "Kim", "pair": 4}, 404),
        ("DELETE", "/api/reviews/leaks/votes", None, 405),
    ],
)
def test_what_cannot_be_used_is_refused(client: Any, method: str, path: str, body: Any, status: int) -> None:
    sent = {} if body is None else {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}
    answer = client.request(method, path, **sent)
    assert answer.status_code == status
    assert answer.json()["error"]["problem"]


def test_who_may_only_read_cannot_vote(collections: tuple[Path, Path], review: Review) -> None:
    settings = ServiceSettings(
        {"scenes": collections[1]}, reviews=(review.folder,), keys=(make_key("ben", KEY, may_write=False),)
    )
    vote = {"reviewer": "Mia", "pair": 1, "verdict": "same"}
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        assert client.get("/api/reviews").status_code == 401
        keyed = {"X-API-Key": KEY}
        assert client.get("/api/reviews", headers=keyed).status_code == 200
        assert client.post("/api/reviews/leaks/votes", json=vote, headers=keyed).status_code == 403
    assert not [cast for cast in review.list_votes() if cast.reviewer == "Mia"]


def test_a_disk_that_refuses_is_told_and_the_vote_is_not_acknowledged(
    collections: tuple[Path, Path], review: Review, tmp_path: Path
) -> None:
    broken = Path(shutil.copytree(review.folder, tmp_path / "broken"))
    for file in broken.glob("votes.sqlite*"):
        file.unlink()
    (broken / "votes.sqlite").write_bytes(b"no database" * 500)
    settings = ServiceSettings({"scenes": collections[1]}, reviews=(broken,))
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        answer = client.post("/api/reviews/broken/votes", json={"reviewer": "Kim", "pair": 1, "verdict": "same"})
        assert answer.status_code == 507
