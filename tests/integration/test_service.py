"""The service over a real collection: every route that reads, by a client in this process."""

import io
import json
import logging
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from PIL import Image
from support.scenes import draw_scene, write_jpeg

import resight
from resight.apps.service.api_keys import make_key
from resight.apps.service.app import create_app
from resight.apps.service.request_logging import configure_logging
from resight.apps.service.settings import ServiceSettings

HERE = "http://127.0.0.1"
LONG, READER = "k" * 20, "r" * 20


@pytest.fixture(scope="module")
def served(indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(indexed, tmp_path_factory.mktemp("served") / "scenes.resight"))


@pytest.fixture(scope="module")
def client(served: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    reports = tmp_path_factory.mktemp("reports")
    (reports / "run.html").write_text("<title>Run &amp; more</title><script>1</script>", encoding="utf-8")
    (reports / "out.html").symlink_to(served / "resight.json")
    with open_service(served, reports=reports, workers=2, max_upload_bytes=2_000_000) as client:
        yield client


def open_service(folder: Path, **settings: Any) -> TestClient:
    return TestClient(create_app(ServiceSettings({"scenes": folder}, **settings)), base_url=HERE)


def search(client: TestClient, image: Path | bytes, **fields: Any) -> httpx.Response:
    data = image.read_bytes() if isinstance(image, Path) else image
    return client.post("/api/search", files={"image": ("view.jpg", data)}, data=fields)


def ask_by_id(client: TestClient, id: str, **fields: str) -> httpx.Response:
    return client.post("/api/search", files={name: (None, text) for name, text in {"id": id, **fields}.items()})


def test_health_says_what_is_served(client: TestClient) -> None:
    assert client.get("/api/health").json() == {
        "status": "ok",
        "version": metadata.version("resight"),
        "ready": True,
        "faults": {},
        "images": 12,
        "collections": ["scenes"],
        "quarantined": 0,
        "cluster": None,
    }


def test_a_search_gives_the_answers_of_the_library(client: TestClient, served: Path, view: Path) -> None:
    answer = search(client, view, k="5", thumbnail="true").json()
    expected = resight.open(served).ask(view, 5)
    assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in expected.hits]
    for told, hit in zip(answer["hits"], expected.hits, strict=True):
        assert told["score"] == pytest.approx(hit.score, rel=1e-6)
        assert told["probability"] == hit.probability
        assert told["size"] == [480, 360]
    assert answer["hits"][0]["id"] == "scene_07.jpg"
    assert answer["hits"][0]["path"] is None
    assert (answer["collection"], answer["images"], answer["stage"]) == ("scenes", 12, "verified")
    assert answer["query"]["size"] == [400, 300]
    assert answer["query"]["thumbnail"].startswith("data:image/webp;base64,")
    assert answer["position"]["lat"] == pytest.approx(7, abs=0.01)


def test_a_box_is_searched_for_as_the_library_does(client: TestClient, served: Path, scenes: Path) -> None:
    box = (60.0, 40.0, 300.0, 240.0)
    answer = search(client, scenes / "scene_03.jpg", box="60,40,300,240", k="3").json()
    expected = resight.open(served).ask(scenes / "scene_03.jpg", 3, box=box)
    assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in expected.hits]
    assert answer["query"]["box"] == list(box)
    stored = ask_by_id(client, "scene_03.jpg", box="60,40,300,240", k="3").json()
    assert [hit["score"] for hit in stored["hits"]] == pytest.approx([hit["score"] for hit in answer["hits"]], rel=1e-5)


def test_a_stored_image_finds_itself_and_filters_hold(client: TestClient) -> None:
    assert ask_by_id(client, "scene_03.jpg").json()["hits"][0]["id"] == "scene_03.jpg"
    filtered = ask_by_id(client, "scene_03.jpg", where="lat>=9").json()["hits"]
    assert sorted(hit["id"] for hit in filtered) == ["scene_09.jpg", "scene_10.jpg", "scene_11.jpg"]
    near = ask_by_id(client, "scene_03.jpg", near="5,10,1000").json()["hits"]
    assert [hit["id"] for hit in near] == ["scene_05.jpg"]


def test_the_stages_end_with_what_a_search_gives(client: TestClient, view: Path) -> None:
    response = client.post("/api/search/stages", files={"image": ("view.jpg", view.read_bytes())}, data={"k": "4"})
    assert response.headers["content-type"] == "application/x-ndjson"
    query, shortlist, answer = map(json.loads, response.text.splitlines())
    assert (query["event"], query["size"]) == ("query", [400, 300])
    assert (shortlist["event"], shortlist["stage"]) == ("shortlist", "shortlist")
    assert {hit["probability"] for hit in shortlist["hits"]} == {None}
    assert answer["event"] == "answer"
    whole = search(client, view, k="4").json()
    assert answer["hits"] == whole["hits"]


def test_why_is_the_same_from_memory_and_from_a_new_search(client: TestClient, served: Path, view: Path) -> None:
    def ask(client: TestClient) -> httpx.Response:
        return client.post("/api/why", files={"image": ("v.jpg", view.read_bytes())}, data={"hit": "scene_07.jpg"})

    search(client, view)
    known = ask(client).json()
    with open_service(served) as other:
        worked_out = ask(other).json()
    for why in (known, worked_out):
        assert (why["id"], why["located_by"]) == ("scene_07.jpg", "homography")
        assert why["match"]["inliers"] >= 50
        assert why["heat"]["rows"] * why["heat"]["columns"] > 0
        assert why["sizes"] == {"query": [400, 300], "image": [480, 360]}
    assert known["match"] == worked_out["match"]
    explained = search(client, view, explain="true", k="2").json()
    assert explained["why"]["scene_07.jpg"]["match"] == known["match"]
    assert len(explained["why"]) == 2


def test_images_come_page_by_page_in_the_order_of_their_ids(client: TestClient) -> None:
    seen, after = [], None
    while True:
        page = client.get("/api/images", params={"limit": 5, **({"after": after} if after else {})}).json()
        seen += [record["id"] for record in page["images"]]
        assert page["total"] == 12
        if (after := page["next"]) is None:
            break
    assert seen == [f"scene_{number:02}.jpg" for number in range(12)]
    assert client.get("/api/images", params={"where": "lat<3"}).json()["total"] == 3


def test_an_image_is_served_small_and_without_its_position(client: TestClient) -> None:
    record = client.get("/api/image", params={"id": "scene_03.jpg"}).json()
    assert (record["size"], record["attributes"]["lat"], record["path"]) == ([480, 360], 3.0, None)
    picture = client.get("/api/image/file", params={"id": "scene_03.jpg", "side": 150})
    assert picture.headers["content-type"] == "image/webp"
    with Image.open(io.BytesIO(picture.content)) as image:
        assert (image.size, len(image.getexif())) == ((160, 120), 0)
    again = client.get(
        "/api/image/file",
        params={"id": "scene_03.jpg", "side": 150},
        headers={"if-none-match": picture.headers["etag"]},
    )
    assert (again.status_code, again.content) == (304, b"")
    kept = client.get("/api/image/file", params={"id": "scene_03.jpg", "metadata": "keep"})
    with Image.open(io.BytesIO(kept.content)) as image:
        assert image.getexif().get_ifd(0x8825)


def test_collections_tell_what_there_is_to_filter_by(client: TestClient) -> None:
    (collection,) = client.get("/api/collections").json()
    assert (collection["name"], collection["images"], collection["positions"]) == ("scenes", 12, True)
    attributes = {one["name"]: one for one in client.get("/api/collections/attributes").json()["attributes"]}
    assert (attributes["lat"]["kind"], attributes["lat"]["min"], attributes["lat"]["max"]) == ("number", 0.0, 11.0)
    positions = client.get("/api/collections/positions").json()
    assert (len(positions["ids"]), positions["cut"]) == (12, False)


def test_reports_are_shown_shut_off_and_only_those_of_the_folder(client: TestClient) -> None:
    (report,) = client.get("/api/reports").json()
    assert (report["name"], report["title"]) == ("run.html", "Run & more")
    page = client.get("/reports/run.html")
    assert page.headers["content-security-policy"].startswith("sandbox allow-scripts;")
    for name in ("out.html", "..%2fscenes.resight%2fresight.json", "none.html"):
        assert client.get(f"/reports/{name}").status_code == 404


def test_every_answer_carries_an_id_and_security_headers(client: TestClient) -> None:
    for path in ("/", "/assets/js/main.js", "/api/health", "/api/nothing"):
        headers = client.get(path, headers={"x-request-id": "mine-1"}).headers
        assert headers["x-request-id"] == "mine-1"
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/api/health", headers={"x-request-id": "no good\tid"}).headers["x-request-id"] != "no good\tid"


@pytest.mark.parametrize(
    ("status", "named", "fields"),
    [
        (400, "box", {"box": "1,2,3"}),
        (400, "box", {"box": "9000,9000,9900,9900"}),
        (400, "box", {"box": "nan,0,10,10"}),
        (400, "condition", {"where": "label"}),
        (400, "circle", {"near": "91,0,5"}),
        (404, "collection", {"collection": "other"}),
        (422, "colour", {"colour": "red"}),
        (422, "k", {"k": "0"}),
        (422, "k", {"k": "many"}),
        (422, "image", {"id": "scene_03.jpg"}),
    ],
)
def test_what_is_sent_wrongly_is_named(
    client: TestClient, view: Path, status: int, named: str, fields: dict[str, str]
) -> None:
    response = search(client, view, **fields)
    assert response.status_code == status
    error = response.json()["error"]
    assert named in json.dumps(error)
    assert error["fix"]
    assert "where, near, k" in error["expected"] or status != 422 or named == "image"


def test_bad_images_bad_types_and_bad_addresses_are_refused(client: TestClient, view: Path) -> None:
    answers = [
        (400, search(client, b"no image")),
        (400, search(client, view.read_bytes()[:900])),
        (413, search(client, bytes(2_100_000))),
        (415, client.post("/api/search", json={"id": "scene_03.jpg"})),
        (415, client.post("/api/session", content=b"key=1", headers={"content-type": "text/plain"})),
        (400, client.post("/api/search", content=b"x", headers={"content-type": "multipart/form-data"})),
        (404, ask_by_id(client, "nothing")),
        (404, client.get("/api/image", params={"id": "../../etc/passwd"})),
        (404, client.get("/assets/../app.py")),
        (404, client.get("/nothing")),
        (405, client.patch("/api/search")),
        (422, client.get("/api/images", params={"limit": 5, "colour": "red"})),
        (422, client.get("/api/image")),
        (403, client.get("/api/health", headers={"host": "evil.example"})),
        (403, client.post("/api/search", headers={"origin": "https://evil.example"})),
    ]
    for expected, response in answers:
        assert response.status_code == expected, response.text
        assert set(response.json()["error"]) == {"problem", "expected", "actual", "fix"}
        assert response.json()["request_id"] == response.headers["x-request-id"]


def test_a_file_that_has_gone_is_said_without_its_path(served: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(served, tmp_path / "own.resight"))
    lost = write_jpeg(tmp_path / "lost.jpg", draw_scene(50))
    resight.open(own).add(lost)
    lost.unlink()
    with open_service(own) as client:
        for response in (
            client.get("/api/image/file", params={"id": "lost.jpg"}),
            ask_by_id(client, "lost.jpg", box="10,10,200,200"),
        ):
            assert response.status_code == 404
            assert str(tmp_path) not in response.text


def test_with_keys_nothing_is_told_to_strangers(served: Path, view: Path) -> None:
    keys = (make_key("anna", LONG), make_key("ben", READER, may_write=False))
    with open_service(served, keys=keys) as client:
        assert client.get("/api/images").status_code == 401
        assert client.get("/metrics").headers["www-authenticate"] == "Bearer"
        assert client.get("/api/health").json()["collections"] == []
        assert client.get("/").status_code == 200
        assert client.get("/api/images", headers={"authorization": f"Bearer {LONG}"}).status_code == 200
        refused = client.delete("/api/image", params={"id": "scene_00.jpg"}, headers={"x-api-key": READER})
        assert refused.status_code == 403
        assert client.get("/api/session").json() == {"needs_key": True, "signed_in": False, "may_write": False}
        assert client.post("/api/session", json={"key": "wrong"}).status_code == 401
        signed = client.post("/api/session", json={"key": READER})
        assert "HttpOnly" in signed.headers["set-cookie"]
        assert "samesite=strict" in signed.headers["set-cookie"].lower()
        assert client.get("/api/session").json() == {"needs_key": True, "signed_in": True, "may_write": False}
        assert search(client, view).status_code == 200
        client.delete("/api/session")
        assert client.get("/api/images").status_code == 401


def test_a_client_that_asks_too_often_is_told_when_to_come_back(served: Path) -> None:
    with open_service(served, rate=0.1) as client:
        assert client.get("/api/images").status_code == 200
        second = client.get("/api/images")
        assert second.status_code == 429
        assert 1 <= int(second.headers["retry-after"]) <= 10


def test_other_sites_may_ask_only_where_they_are_named(served: Path) -> None:
    site = {"origin": "https://shop.example", "access-control-request-method": "POST"}
    with open_service(served, cors=("https://shop.example",)) as client:
        allowed = client.options("/api/search", headers=site)
        assert allowed.headers["access-control-allow-origin"] == "https://shop.example"
    with open_service(served) as client:
        assert "access-control-allow-origin" not in client.options("/api/search", headers=site).headers


def test_metrics_count_the_requests_by_route(client: TestClient) -> None:
    client.get("/api/image", params={"id": "nothing"})
    page = client.get("/metrics").text
    assert 'resight_requests_total{method="GET",route="/api/image",status="404"}' in page
    assert "resight_images 12" in page
    assert "nothing" not in page


def test_the_description_names_every_route_with_its_errors(client: TestClient) -> None:
    paths = client.get("/api/openapi.json").json()["paths"]
    assert {"/api/search", "/api/search/stages", "/api/why", "/api/images", "/api/image", "/api/jobs"} <= set(paths)
    fields = paths["/api/search"]["post"]["requestBody"]["content"]
    assert list(fields) == ["multipart/form-data"]
    assert {"400", "401", "404", "413", "415", "422", "429", "503"} <= set(paths["/api/search"]["post"]["responses"])


def test_what_goes_wrong_is_logged_with_the_id_that_the_client_is_told(
    served: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("resight.apps.service.routes.images.serialize_record", fail)
    loggers = logging.getLogger("resight")
    before = (loggers.handlers, loggers.propagate)
    configure_logging("json")
    try:
        with open_service(served) as client:
            answer = client.get("/api/image", params={"id": "scene_03.jpg"})
    finally:
        loggers.handlers, loggers.propagate = before
    assert answer.status_code == 500
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    (told,) = [line for line in lines if "trace" in line]
    assert told["request_id"] == answer.json()["request_id"]


def test_a_refusal_too_may_be_read_by_the_sites_that_are_named(served: Path) -> None:
    with open_service(served, keys=(make_key("anna", LONG),), cors=("https://shop.example",)) as client:
        refused = client.get("/api/images", headers={"Origin": "https://shop.example"})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "https://shop.example")


def test_a_session_behind_a_proxy_that_speaks_tls_is_for_tls_alone(served: Path) -> None:
    with open_service(served, keys=(make_key("anna", LONG),)) as client:
        for headers, secure in (({}, False), ({"X-Forwarded-Proto": "https"}, True)):
            cookie = client.post("/api/session", json={"key": LONG}, headers=headers).headers["set-cookie"]
            assert ("Secure" in cookie) == secure
