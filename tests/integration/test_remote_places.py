"""Images and collections in an object store: a real S3 over HTTP, on this machine."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from support.builders import draw_texture
from support.serving import PATIENCE, serve
from typer.testing import CliRunner

import resight
from resight.apps.cli import app
from resight.errors import CollectionError, InputError, StorageError
from resight.files import remote
from resight.search.calibration import Calibration

pytest.importorskip("s3fs", reason="the extra `remote` is not installed")
moto_server = pytest.importorskip("moto.server", reason="moto is not installed")
run = CliRunner().invoke
BUCKET = "things"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A client for an empty bucket; the AWS variables point to it, and the cache of this machine to a new folder."""
    import s3fs

    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "anybody"),
        ("AWS_SECRET_ACCESS_KEY", "anything"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("RESIGHT_CACHE", str(tmp_path / "cache")),
    ):
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem(use_listings_cache=False)
    files.mkdir(BUCKET)
    yield files
    files.rm(BUCKET, recursive=True)
    s3fs.S3FileSystem.clear_instance_cache()


def encode(seed: int) -> bytes:
    return cv2.imencode(".png", draw_texture(np.random.default_rng(seed)))[1].tobytes()


def put_photos(files: Any, count: int = 4) -> None:
    for number in range(count):
        files.pipe_file(f"{BUCKET}/photos/{number % 2}/{number}.png", encode(number))


def test_photos_of_a_bucket_are_indexed_found_shown_and_known_again(s3: Any, tmp_path: Path) -> None:
    put_photos(s3)
    s3.pipe_file(f"{BUCKET}/photos/broken.jpg", b"not an image")
    (tmp_path / "q.png").write_bytes(encode(3))
    collection, page = str(tmp_path / "c.resight"), tmp_path / "answer.html"

    made = run(app, ["index", f"s3://{BUCKET}/photos", "--into", collection, "--encoder", "sift", "--json"])
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert (told["added"], told["skipped"][0]["path"]) == (4, f"s3://{BUCKET}/photos/broken.jpg")

    answer = run(app, ["search", collection, str(tmp_path / "q.png"), "--json", "--html", str(page)])
    assert answer.exit_code == 0, answer.output
    best = json.loads(answer.stdout)["hits"][0]
    assert (best["id"], best["path"]) == ("1/3.png", f"s3://{BUCKET}/photos/1/3.png")
    assert page.read_text(encoding="utf-8").count("data:image/") > 2  # the pictures of the answers, from the bucket

    s3.pipe_file(f"{BUCKET}/photos/0/0.png", encode(99))
    again = resight.open(collection).add(f"s3://{BUCKET}/photos")
    assert (again.added, again.updated, again.unchanged) == (0, 1, 3)


def test_a_manifest_names_addresses(s3: Any, tmp_path: Path) -> None:
    put_photos(s3, 2)
    (tmp_path / "m.csv").write_text(f"path,id\ns3://{BUCKET}/photos/0/0.png,zero\n", encoding="utf-8")
    s3.pipe_file(f"{BUCKET}/photos/m.csv", b"path,id\n1/1.png,one\n")
    photos = resight.open(tmp_path / "c.resight", "sift")
    assert photos.add(tmp_path / "m.csv", f"s3://{BUCKET}/photos/m.csv").added == 2
    assert photos.add(tmp_path / "m.csv", f"s3://{BUCKET}/photos/m.csv").unchanged == 2
    assert {record.id: remote.to_url(record.path) for record in photos.records()} == {
        "zero": f"s3://{BUCKET}/photos/0/0.png",
        "one": f"s3://{BUCKET}/photos/1/1.png",
    }


def test_a_collection_lies_in_a_bucket(s3: Any, tmp_path: Path) -> None:
    put_photos(s3)
    (tmp_path / "q.png").write_bytes(encode(2))
    place = f"s3://{BUCKET}/photos.resight"
    made = run(app, ["index", f"s3://{BUCKET}/photos", "--into", place, "--encoder", "sift"])
    assert made.exit_code == 0, made.output
    assert f"{BUCKET}/photos.resight/collection.json" in s3.ls(f"{BUCKET}/photos.resight", detail=False)

    answer = run(app, ["search", place, str(tmp_path / "q.png"), "--json"])
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["hits"][0]["id"] == "0/2.png"

    told = json.loads(run(app, ["info", place, "--json"]).stdout)
    assert (told["collection"], told["images"]) == (place, 4)
    assert told["store_bytes"] > 1000 and told["index_bytes"] > 1000
    assert resight.open(place).delete("0/2.png") == 1
    assert len(resight.open(place)) == 3


def test_what_one_machine_learns_another_reads(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code book and calibration travel with the collection; the cache of the second machine begins empty."""
    put_photos(s3)
    place = f"s3://{BUCKET}/learnt.resight"
    learning = ("--set", "branches.0.descriptor.codebook=learn", "--set", "branches.0.descriptor.words=16")
    made = run(app, ["index", f"s3://{BUCKET}/photos", "--into", place, "--encoder", "sift", *learning])
    assert made.exit_code == 0, made.output
    first = resight.open(place)
    first.calibrate(Calibration(-1.0, {"inliers": 0.5}))
    monkeypatch.setenv("RESIGHT_CACHE", str(tmp_path / "elsewhere"))
    second = resight.open(place)
    assert second.local_folder != first.local_folder
    assert (second.local_folder / "files").is_dir()
    assert second.view() and json.loads((second.local_folder / "calibration.json").read_text())[0]["bias"] == -1.0
    (tmp_path / "q.png").write_bytes(encode(1))
    assert second.search(tmp_path / "q.png", k=1)[0].id == "1/1.png"


def test_a_collection_in_a_bucket_is_served_and_no_address_of_a_request_is_opened(s3: Any) -> None:
    put_photos(s3)
    s3.pipe_file(f"{BUCKET}/secret.png", encode(50))
    place, secret = Path(f"s3://{BUCKET}/photos.resight"), f"s3://{BUCKET}/secret.png"
    resight.open(place, "sift").add(f"s3://{BUCKET}/photos")
    with serve(place) as server, httpx.Client(base_url=server.address, timeout=PATIENCE) as client:
        found = client.post("/api/search", files={"image": ("q.png", encode(2))}).json()["hits"][0]
        assert (found["id"], found["path"]) == ("0/2.png", f"s3://{BUCKET}/photos/0/2.png")
        shown = client.get("/api/image/file", params={"id": "0/2.png"})
        assert (shown.status_code, shown.headers["content-type"]) == (200, "image/webp")
        assert client.get("/api/image/file", params={"id": secret}).status_code == 404
        assert client.post("/api/search", files={"id": (None, secret)}).status_code == 404
        refused = client.post("/api/images", files={"images": ("a.png", encode(7))})
        assert refused.status_code == 403, refused.text


def test_what_is_not_there_is_said_at_once(s3: Any, tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(InputError, match="no image or folder s3://nobody-has-this/photos"):
        resight.open(tmp_path / "c.resight", "sift").add("s3://nobody-has-this/photos")
    with pytest.raises(CollectionError, match=f"no collection at s3://{BUCKET}/none.resight"):
        resight.open(f"s3://{BUCKET}/none.resight", must_exist=True)
    with pytest.raises(StorageError, match="there is no such bucket"):
        resight.open("s3://nobody-has-this/c.resight", "sift")
    s3.pipe_file(f"{BUCKET}/full/notes.txt", b"mine")
    with pytest.raises(CollectionError, match="not a collection and not empty"):
        resight.open(f"s3://{BUCKET}/full", "sift")
    assert time.monotonic() - started < 60


@pytest.mark.usefixtures("s3")
def test_an_address_that_does_not_answer_is_said_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    with socket.socket() as nobody:  # bound, but nobody listens
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        s3fs.S3FileSystem.clear_instance_cache()
        started = time.monotonic()
        with pytest.raises(InputError, match="cannot reach s3://things/photos"):
            remote.stat(Path("s3://things/photos"))
        assert time.monotonic() - started < 30
