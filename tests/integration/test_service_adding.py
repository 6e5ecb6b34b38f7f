"""Images added, changed and deleted over HTTP: real collections and real files."""

import contextlib
import hashlib
import json
import time
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi import FastAPI
from PIL import Image
from starlette.testclient import TestClient
from support.odd_images import png_header
from support.scenes import draw_scene, write_jpeg
from support.uploads import WAIT, draw_jpeg, finish, list_ids, send

import resight
from resight.apps.service.app import create_app
from resight.apps.service.jobs.maintenance import sweep
from resight.apps.service.settings import ServiceSettings
from resight.files.lock import writer_lock


def test_added_images_are_kept_by_content_and_found(client: TestClient, folder: Path) -> None:
    job = finish(client, send(client, [10, 11], attributes='{"label": "scene"}'))
    assert (job["state"], job["kind"], job["added"], job["done"], job["total"]) == ("done", "add", 2, 2, 2)
    (record,) = resight.open(folder).records(["scene_10.jpg"])
    name = hashlib.sha256(draw_jpeg(10)).hexdigest()
    assert record.path == folder / "uploads" / name[:2] / name
    assert record.attributes == {"label": "scene"}
    found = client.post("/api/search", files={"image": ("q.jpg", draw_jpeg(10))}, data={"k": "1"}).json()
    assert [hit["id"] for hit in found["hits"]] == ["scene_10.jpg"]


def test_the_service_process_decodes_nothing_itself(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("an image reached a decoder outside of the sandbox")

    monkeypatch.setattr("resight.data.image_files.decode", fail)  # the decode processes have their own
    monkeypatch.setattr(Image, "open", fail)
    part = {"k": "1", "box": "10,10,150,110"}
    job = finish(client, send(client, [10, 11], attributes='{"label": "scene"}'))
    assert (job["state"], job["added"], job["skipped"]) == ("done", 2, [])
    found = client.post("/api/search", files={"image": ("q.jpg", draw_jpeg(10))}, data=part).json()
    assert [hit["id"] for hit in found["hits"]] == ["scene_10.jpg"]
    stored = client.post("/api/search", files={"id": (None, "scene_11.jpg")}, data=part).json()
    assert [hit["id"] for hit in stored["hits"]] == ["scene_11.jpg"]
    assert client.get("/api/image/file", params={"id": "scene_10.jpg", "side": 96}).status_code == 200
    changed = client.put("/api/image", params={"id": "scene_10.jpg"}, files={"attributes": (None, '{"label": "x"}')})
    assert finish(client, changed)["updated"] == 1


def test_a_file_that_only_pretends_to_be_small_is_skipped_by_the_sandbox(client: TestClient, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.png"
    bomb.write_bytes(png_header(20_000, 20_000))
    (tmp_path / "slow.jpg").write_bytes(draw_jpeg(10))
    service = cast(FastAPI, client.app).state.service
    (skipped,) = service.collections["photos"].add([resight.ImageRef("bomb", bomb)]).skipped
    assert "more than the limit" in skipped.reason
    service.decode_pool.timeout = 0.0
    (slow,) = service.collections["photos"].add([resight.ImageRef("slow", tmp_path / "slow.jpg")]).skipped
    assert "too much time or memory" in slow.reason


def test_bad_files_are_named_at_once_and_the_good_ones_are_added(client: TestClient, folder: Path) -> None:
    files = [
        ("images", ("../../etc/text.jpg", b"no image", "image/jpeg")),
        ("images", ("good.jpg", draw_jpeg(12), "image/jpeg")),
        ("images", ("half.jpg", draw_jpeg(13)[:800], "image/jpeg")),
    ]
    response = client.post("/api/images", files=files, data={"ids": ["x", "y", "z"]})
    skipped = response.json()["job"]["skipped"]
    assert [one["path"] for one in skipped] == ["text.jpg", "half.jpg"] and all(one["reason"] for one in skipped)
    assert finish(client, response)["added"] == 1
    assert "y" in list_ids(folder) and len(list_ids(folder)) == 4


def test_nothing_but_bad_files_is_a_400_that_names_them(client: TestClient, folder: Path) -> None:
    response = client.post("/api/images", files=[("images", ("text.jpg", b"no image"))])
    assert response.status_code == 400
    assert "text.jpg" in response.json()["error"]["actual"]
    assert client.get("/api/jobs").json() == [] and not (folder / "uploads").exists()


@pytest.mark.parametrize(
    ("fields", "status", "word"),
    [
        ({"attributes": "{"}, 400, "JSON"),
        ({"attributes": '{"box": "1,2,3,4"}'}, 400, "box"),
        ({"ids": ["a", "b"]}, 422, "ids"),
        ({"ids": ["a\nb"]}, 400, "id"),
        ({"colour": "red"}, 422, "colour"),
        ({"collection": "other"}, 404, "other"),
    ],
)
def test_fields_that_cannot_be_used_are_refused_by_name(
    client: TestClient, fields: dict[str, Any], status: int, word: str
) -> None:
    response = client.post("/api/images", files=[("images", ("a.jpg", draw_jpeg(0)))], data=fields)
    assert response.status_code == status, response.text
    assert word in str(response.json()["error"])
    assert client.get("/api/jobs").json() == []


def test_a_body_of_another_type_is_a_415_and_too_many_files_are_a_413(client: TestClient) -> None:
    assert client.post("/api/images", json={"images": []}).status_code == 415
    assert client.post("/api/images/delete", content="ids=a").status_code == 415
    files = [("images", (f"{number}.jpg", b"x")) for number in range(11)]
    assert client.post("/api/images", files=files).status_code == 413


def test_an_update_replaces_attributes_or_the_file(client: TestClient, folder: Path, three: Path) -> None:
    form = {"attributes": (None, '{"year": 1904, "label": null}')}
    job = finish(client, client.put("/api/image", params={"id": "own_1.jpg"}, files=form))
    assert (job["kind"], job["updated"]) == ("update", 1)
    (record,) = resight.open(folder).records(["own_1.jpg"])
    assert (record.path, dict(record.attributes)) == (three / "own_1.jpg", {"year": 1904})
    finish(client, client.put("/api/image", params={"id": "own_1.jpg"}, files={"image": ("new.jpg", draw_jpeg(20))}))
    (record,) = resight.open(folder).records(["own_1.jpg"])
    assert (record.sha256, dict(record.attributes)) == (hashlib.sha256(draw_jpeg(20)).hexdigest(), {"year": 1904})
    assert (three / "own_1.jpg").exists()


def test_an_update_of_nothing_or_of_an_unknown_image_is_refused(client: TestClient) -> None:
    form = {"attributes": (None, "{}")}
    assert client.put("/api/image", params={"id": "nobody"}, files=form).status_code == 404
    empty = client.put("/api/image", params={"id": "own_1.jpg"}, files={"attribute": (None, "{}")})
    assert empty.status_code == 422 and "attribute" in str(empty.json()["error"])
    bad = client.put("/api/image", params={"id": "own_1.jpg"}, files={"image": ("new.jpg", b"no image")})
    assert bad.status_code == 400 and "new.jpg" in str(bad.json()["error"])


def test_a_delete_is_done_when_it_answers_and_takes_uploads_only(client: TestClient, folder: Path, three: Path) -> None:
    finish(client, send(client, [10, 11]))
    assert client.delete("/api/image", params={"id": "scene_10.jpg"}).json() == {"removed": 1}
    assert client.delete("/api/image", params={"id": "scene_10.jpg"}).status_code == 404
    body = {"ids": ["scene_11.jpg", "own_0.jpg", "nobody"]}
    assert client.post("/api/images/delete", json=body).json() == {"removed": 2, "missing": ["nobody"]}
    assert list_ids(folder) == ["own_1.jpg", "own_2.jpg"]
    with contextlib.suppress(resight.errors.CollectionBusy):  # the service may be at it itself
        sweep(client.app.state.service.jobs.intakes["photos"])  # type: ignore[attr-defined]
    end = time.monotonic() + 10
    while any(path.is_file() for path in (folder / "uploads").glob("??/*")):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert (three / "own_0.jpg").exists()


def test_a_delete_while_another_program_writes_is_a_503_that_says_when_to_come_back(
    client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer_lock(folder), monkeypatch.context() as patch:
        patch.setattr("resight.apps.service.routes.images_write.PATIENCE", 0.2)
        response = client.delete("/api/image", params={"id": "own_0.jpg"})
        assert response.status_code == 503 and int(response.headers["Retry-After"]) > 0
        job = send(client, [10]).json()["job"]  # a promise needs no lock
    assert client.delete("/api/image", params={"id": "own_0.jpg"}).json() == {"removed": 1}
    end = time.monotonic() + WAIT
    while client.get(f"/api/jobs/{job['id']}").json()["state"] != "done":
        assert time.monotonic() < end
        time.sleep(0.05)


def test_images_deleted_while_a_job_adds_others_stay_deleted(client: TestClient, folder: Path) -> None:
    jobs = [send(client, range(first, first + 10)) for first in (10, 20, 30)]
    while "scene_10.jpg" not in list_ids(folder):
        time.sleep(0.02)
    stored_and_waiting = ["scene_10.jpg", "scene_39.jpg", "own_0.jpg"]
    answer = client.post("/api/images/delete", json={"ids": stored_and_waiting}).json()
    assert answer == {"removed": 3, "missing": []}
    assert {finish(client, job)["state"] for job in jobs} == {"done"}
    expected = {f"scene_{number}.jpg" for number in range(11, 39)} | {"own_1.jpg", "own_2.jpg"}
    assert set(list_ids(folder)) == expected


def test_events_tell_how_far_a_job_is_and_end_with_done(client: TestClient) -> None:
    job = send(client, range(10, 18)).json()["job"]
    text = client.get(f"/api/jobs/{job['id']}/events").text
    events = [block.split("\n") for block in text.strip().split("\n\n") if not block.startswith(":")]
    told = [(lines[0], json.loads(lines[1].removeprefix("data: "))) for lines in events]
    assert {name for name, _ in told[:-1]} == {"event: progress"}
    assert told[-1][0] == "event: done" and told[-1][1]["added"] == 8
    done = [state["done"] for _, state in told]
    assert done == sorted(done)
    assert client.get("/api/jobs/nothing/events").status_code == 404


def test_a_cancelled_job_keeps_what_is_stored_and_leaves_out_the_rest(client: TestClient, folder: Path) -> None:
    with writer_lock(folder):  # nothing can be stored meanwhile
        job = send(client, range(10, 20)).json()["job"]
        cancelled = client.delete(f"/api/jobs/{job['id']}").json()
    assert (cancelled["state"], cancelled["added"]) == ("cancelled", 0)
    finish(client, send(client, [30]))
    stored = set(list_ids(folder))
    assert "scene_30.jpg" in stored
    added = client.get(f"/api/jobs/{job['id']}").json()["added"]
    assert len(stored) == 4 + added


def test_a_read_only_service_refuses_every_change(folder: Path) -> None:
    with TestClient(
        create_app(ServiceSettings({"photos": folder}, read_only=True, workers=1)), "http://localhost"
    ) as client:
        refused = [
            send(client, [10]),
            client.put("/api/image", params={"id": "own_0.jpg"}, files={"attributes": (None, "{}")}),
            client.delete("/api/image", params={"id": "own_0.jpg"}),
            client.post("/api/images/delete", json={"ids": ["own_0.jpg"]}),
            client.delete("/api/jobs/x"),
        ]
        assert [response.status_code for response in refused] == [403] * 5
        assert client.get("/api/jobs").json() == []
    assert len(list_ids(folder)) == 3 and not (folder / "jobs.sqlite").exists()


def test_everything_is_described(client: TestClient) -> None:
    paths = client.get("/api/openapi.json").json()["paths"]
    assert {"post"} <= set(paths["/api/images"]) and {"put", "delete"} <= set(paths["/api/image"])
    form = paths["/api/images"]["post"]["requestBody"]["content"]
    assert list(form) == ["multipart/form-data"]
    assert {"/api/images/delete", "/api/jobs", "/api/jobs/{job}", "/api/jobs/{job}/events"} <= set(paths)


def test_a_position_that_an_update_leaves_out_is_gone(client: TestClient, folder: Path, tmp_path: Path) -> None:
    """Also where the file's own EXIF tells it."""
    image = write_jpeg(tmp_path / "placed.jpg", draw_scene(30, 160, 120), position=(48.5, 2.5))
    finish(client, client.post("/api/images", files={"images": ("placed.jpg", image.read_bytes())}))
    (record,) = resight.open(folder).records(["placed.jpg"])
    assert record.attributes["lat"] == pytest.approx(48.5)
    form = {"attributes": (None, '{"label": "x"}')}
    assert finish(client, client.put("/api/image", params={"id": "placed.jpg"}, files=form))["updated"] == 1
    (record,) = resight.open(folder).records(["placed.jpg"])
    assert dict(record.attributes) == {"label": "x"}


def test_attributes_that_no_text_can_hold_are_refused_in_words(client: TestClient) -> None:
    refused = send(client, [40], attributes='{"\\ud800": {}}')
    assert refused.status_code == 400
    assert "problem" in refused.json()["error"]


def test_a_list_with_text_that_no_answer_can_carry_is_refused_before_anything_is_deleted(
    client: TestClient, folder: Path
) -> None:
    body = '{"ids": ["own_0.jpg", "\\ud800"]}'
    refused = client.post("/api/images/delete", content=body, headers={"content-type": "application/json"})
    assert refused.status_code == 422 and "surrogate" in refused.json()["error"]["actual"]
    assert len(list_ids(folder)) == 3
