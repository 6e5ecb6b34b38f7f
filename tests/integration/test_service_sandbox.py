"""The server process decodes nothing: the whole life of an image, with every decoder of this process made to fail."""

import time
from pathlib import Path

import cv2
import pytest
from PIL import Image, ImageFile
from starlette.testclient import TestClient
from support.scenes import draw_scene, write_jpeg

from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings

NAME = "photo.jpg"


@pytest.fixture
def photo(tmp_path: Path) -> bytes:
    return write_jpeg(tmp_path / NAME, draw_scene(40)).read_bytes()


def forbid_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("an image reached a decoder in the server process")

    monkeypatch.setattr("resight.data.image_files.decode", fail)
    monkeypatch.setattr("resight.data.decode.decode", fail)
    monkeypatch.setattr(Image, "open", fail)
    monkeypatch.setattr(ImageFile.ImageFile, "__init__", fail)  # of every format
    for name in ("imdecode", "imread", "imdecodemulti", "imreadmulti"):
        monkeypatch.setattr(cv2, name, fail)


def test_an_image_lives_and_dies_without_being_decoded_in_the_server(
    own: Path, photo: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_decoding(monkeypatch)
    with TestClient(create_app(ServiceSettings({"photos": own}, workers=1)), "http://localhost") as client:
        job = client.post("/api/images", files=[("images", (NAME, photo))]).json()["job"]
        while job["state"] in ("waiting", "running"):
            time.sleep(0.05)
            job = client.get(f"/api/jobs/{job['id']}").json()
        assert (job["added"], job["skipped"]) == (1, [])
        for query in ({"image": ("q.jpg", photo)}, {"id": (None, NAME)}):
            for box in ({}, {"box": "10,10,200,150"}):
                found = client.post("/api/search", files=query, data={"k": "1", "explain": "true", **box})
                assert [hit["id"] for hit in found.json()["hits"]] == [NAME]
        why = client.post("/api/why", files={"image": ("q.jpg", photo)}, data={"hit": NAME})
        assert why.status_code == 200 and why.json()["match"]
        for metadata in ("strip", "keep"):
            shown = client.get("/api/image/file", params={"id": NAME, "side": 96, "metadata": metadata})
            assert shown.status_code == 200 and shown.content
        assert client.get("/").status_code == 200
        assert client.delete("/api/image", params={"id": NAME}).json() == {"removed": 1}


def test_a_damaged_upload_ends_in_the_sandbox_and_the_service_goes_on(
    own: Path, photo: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_decoding(monkeypatch)
    with TestClient(create_app(ServiceSettings({"photos": own}, workers=1)), "http://localhost") as client:
        for data in (b"", photo[:300], photo[:100] + bytes(500)):
            assert client.post("/api/search", files={"image": ("q.jpg", data)}).status_code == 400
        assert client.post("/api/search", files={"image": ("q.jpg", photo)}).status_code == 200
