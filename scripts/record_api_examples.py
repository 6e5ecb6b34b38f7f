"""Record the examples of the API description from a running service: src/resight/apps/service/examples.json.

It serves photographs of the demo (extra demo), a small collection of craters, a review, a report and a training, calls
each operation once and writes what was sent and answered. Lists are cut to two entries and numbers rounded.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

import resight
from resight.apps.cli.demo import find_photos
from resight.apps.service.api_keys import make_key
from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings
from resight.audit.dedup.pairs import Pair
from resight.audit.review.review import Review
from resight.types import ImageRef

FILE = Path(__file__).parents[1] / "src/resight/apps/service/examples.json"
PHOTOS = {"eiffel-2.png": ("Paris", 1911), "notre-dame.png": ("Paris", 1925), "building2-2.png": ("Brisbane", 1999)}
PLACES = {"Paris": (48.8584, 2.2945), "Brisbane": (-27.4771, 153.0288)}
QUERY, KEY = "eiffel-1.png", "a-key-of-the-example"
LONGEST, ENTRIES = 40, 2  # of texts that nobody reads, and of lists


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = prepare(folder)
        with TestClient(create_app(settings), base_url="http://photos.example") as client:
            client.headers["Authorization"] = f"Bearer {KEY}"
            examples = record(client)
        lose_an_upload(folder / "photos.resight")
        with TestClient(create_app(settings), base_url="http://photos.example") as client:
            client.headers["Authorization"] = f"Bearer {KEY}"
            examples |= record_quarantine(client)
    FILE.write_text(json.dumps(examples, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def prepare(folder: Path) -> ServiceSettings:
    source = find_photos()
    refs = []
    for name, (city, year) in PHOTOS.items():
        lat, lon = PLACES[city]
        refs.append(ImageRef(name, source / name, attributes={"city": city, "year": year, "lat": lat, "lon": lon}))
    resight.open(folder / "photos.resight").add(refs)
    crater = {"label": "Tycho", "view": "3x", "crater_lat": -43.3, "crater_lon": 348.8, "diameter_km": 86.2}
    resight.open(folder / "moon.resight", "tokens").add([ImageRef("tycho_3x", source / QUERY, attributes=crater)])
    pairs = [Pair("eiffel-2.png", "notre-dame.png", "same", 0.41)]
    photos = folder / "photos.resight"
    Review.create(folder / "pairs", "Towers", photos, photos, pairs)
    (folder / "reports").mkdir()
    (folder / "reports/museum.html").write_text("<title>Museum, two recipes</title>")
    (folder / "runs/arcface").mkdir(parents=True)
    lines = [
        {"step": 1, "epoch": 0, "loss": 3.1, "rate": 0.001, "seconds": 4.2},
        {"step": 40, "epoch": 0, "validation": 0.61, "seconds": 20.5},
    ]
    (folder / "runs/arcface/curves.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return ServiceSettings(
        {"photos": photos, "moon": folder / "moon.resight"},
        keys=(make_key("curator", KEY),),
        reports=folder / "reports",
        training=folder / "runs",
        reviews=(folder / "pairs",),
    )


def lose_an_upload(collection: Path) -> None:
    """The job database is gone, and with it the reason for an upload: it goes to the quarantine."""
    for file in collection.glob("jobs.sqlite*"):
        file.unlink()
    resight.open(collection).delete("lost.jpg")


class Recorder:
    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.found: dict[str, Any] = {}  # operation → what is sent, and what the service answers

    def call(self, operation: str, method: str, path: str, body: Any = None, shown: Any = None, **given: Any) -> Any:
        """`body` is what httpx takes as json or as files, `shown` the example of it, `given` the parameters."""
        sent = {"files": body} if path_takes_form(path, method) else {"json": body} if body is not None else {}
        rest = {name: value for name, value in given.items() if f"{{{name}}}" not in path}
        answer = self.client.request(method, path.format(**given), params=rest, **sent)
        assert answer.is_success, answer.text
        kind = answer.headers.get("content-type", "").partition(";")[0]
        example: dict[str, Any] = {"parameters": given} if given else {}
        example |= {} if shown is None else {"body": shown}
        example |= {"answer": shorten(answer.json())} if kind == "application/json" else {}
        example |= {"answer": shorten_text(answer.text)} if kind.startswith("text/") else {}
        self.found[operation] = example
        return answer


def record_quarantine(client: TestClient) -> dict[str, Any]:
    while not (listed := client.get("/api/quarantine").json()):
        time.sleep(0.1)
    recorder = Recorder(client)
    recorder.call("list_quarantine", "GET", "/api/quarantine", collection="photos")
    for operation, name, entry in (("retry_uploads", "retry", 0), ("discard_uploads", "discard", -1)):
        keys = {"keys": [listed[entry]["key"]]}
        recorder.call(operation, "POST", f"/api/quarantine/{name}", keys, keys)
    return recorder.found


def record(client: TestClient) -> dict[str, Any]:
    query = (find_photos() / QUERY).read_bytes()
    recorder = Recorder(client)
    call, found = recorder.call, recorder.found

    one = {"id": "eiffel-2.png"}
    search = {"image": "query.jpg", "k": 2, "where": ["year>=1900"]}
    form = [("image", ("query.jpg", query)), ("k", (None, "2")), ("where", (None, "year>=1900"))]
    call("read_health", "GET", "/api/health")
    call("read_metrics", "GET", "/metrics")
    call("list_collections", "GET", "/api/collections")
    call("list_attributes", "GET", "/api/collections/attributes", collection="photos")
    call("list_positions", "GET", "/api/collections/positions", collection="photos")
    call("list_craters", "GET", "/api/collections/craters", collection="moon")
    call("list_images", "GET", "/api/images", where=["year>=1900"], near="48.86,2.29,5000", limit=1)
    call("read_image", "GET", "/api/image", **one)
    call("read_image_file", "GET", "/api/image/file", side=640, **one)
    call("search", "POST", "/api/search", form, search)
    call("explain", "POST", "/api/why", [*form, ("hit", (None, one["id"]))], {**search, "hit": one["id"]})
    lines = client.post("/api/search/stages", files=form).text.splitlines()
    events = [shorten(json.loads(line)) for line in lines]
    found["search_in_stages"] = {
        "body": search,
        "answer": "".join(f"{json.dumps(event)}\n" for event in events),
    }
    files = [("images", ("tower.jpg", query)), ("attributes", (None, '{"city": "Paris"}'))]
    added = call(
        "add_images", "POST", "/api/images", files, {"images": ["tower.jpg"], "attributes": '{"city": "Paris"}'}
    )
    job = added.json()["job"]["id"]
    stream = client.get(f"/api/jobs/{job}/events").text  # ends with the job
    found["follow_job"] = {"parameters": {"job": job}, "answer": stream}
    call("list_jobs", "GET", "/api/jobs", collection="photos")
    call("read_job", "GET", "/api/jobs/{job}", job=job)
    call("cancel_job", "DELETE", "/api/jobs/{job}", job=job)
    changed = call(
        "update_image",
        "PUT",
        "/api/image",
        {"attributes": (None, '{"city": "Paris", "year": 1889}')},
        {"attributes": '{"city": "Paris", "year": 1889}'},
        id="tower.jpg",
    )
    wait(client, changed.json()["job"]["id"])
    call("delete_image", "DELETE", "/api/image", id="tower.jpg")
    ids = {"ids": ["old.jpg", "older.jpg"]}
    call("delete_images", "POST", "/api/images/delete", ids, ids)
    lost = client.post("/api/images", files={"images": ("lost.jpg", (find_photos() / "monalisa.png").read_bytes())})
    wait(client, lost.json()["job"]["id"])
    call("read_session", "GET", "/api/session")
    call("sign_in", "POST", "/api/session", {"key": KEY}, {"key": "the key"})
    call("sign_out", "DELETE", "/api/session")
    call("list_reports", "GET", "/api/reports")
    call("read_report", "GET", "/reports/{name}", name="museum.html")
    call("list_trainings", "GET", "/api/trainings")
    call("read_training", "GET", "/api/trainings/curves", name="arcface")
    review = {"review": "pairs"}
    vote = {"reviewer": "ana", "pair": 1, "verdict": "different"}
    call("list_reviews", "GET", "/api/reviews")
    call("read_review", "GET", "/api/reviews/{review}", reviewer="ana", **review)
    call("read_next", "GET", "/api/reviews/{review}/next", reviewer="ana", **review)
    call("cast_vote", "POST", "/api/reviews/{review}/votes", vote, vote, **review)
    call("read_agreement", "GET", "/api/reviews/{review}/agreement", **review)
    call("export_votes", "GET", "/api/reviews/{review}/votes.csv", **review)
    call("explain_pair", "GET", "/api/reviews/{review}/why", pair=1, **review)
    call("read_pair_image", "GET", "/api/reviews/{review}/picture", pair=1, side="a", size=640, **review)
    undo = {"reviewer": "ana", "pair": 1}
    call("undo_vote", "POST", "/api/reviews/{review}/undo", undo, undo, **review)
    found["error"] = client.post("/api/search", files={**dict(form), "k": (None, "0")}).json()
    return found


def path_takes_form(path: str, method: str) -> bool:
    return path in ("/api/search", "/api/why") or (path, method) in (("/api/images", "POST"), ("/api/image", "PUT"))


def wait(client: TestClient, job: str) -> None:
    while client.get(f"/api/jobs/{job}").json()["finished"] is None:
        time.sleep(0.1)


def shorten_text(text: str) -> str:
    """The first lines, and of metrics those of the service."""
    lines = [line for line in text.splitlines() if not line.startswith(("# HELP python", "# TYPE python", "python"))]
    return "".join(f"{line}\n" for line in lines[:6])


def shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shorten(one) for name, one in value.items()}
    if isinstance(value, list):
        is_box = len(value) == 4 and all(isinstance(one, (int, float)) for one in value)
        is_matrix = len(value) == 3 and all(isinstance(one, (int, float, list)) for one in value)
        return [shorten(one) for one in (value if is_box or is_matrix else value[:ENTRIES])]
    if isinstance(value, str) and len(value) > LONGEST and " " not in value:
        return value[:LONGEST] + "…"
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
