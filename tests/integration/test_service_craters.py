"""What the service tells of craters: their list, the mosaic, and that there may be none."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from support.craters import write_craters

from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings
from resight.collection import open_collection

HERE = "http://127.0.0.1"


@pytest.fixture(scope="module")
def moon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moon")
    open_collection(folder / "moon.resight", "tokens").add(write_craters(folder / "crops", 3))
    (folder / "mosaic.webp").write_bytes(b"RIFF, a picture")
    return folder


def test_craters_and_mosaic(moon: Path) -> None:
    edges = (0.0, -60.0, 180.0, 60.0)
    settings = ServiceSettings(
        {"moon": moon / "moon.resight"}, mosaic=moon / "mosaic.webp", mosaic_bounds=edges, workers=1
    )
    with TestClient(create_app(settings), base_url=HERE) as client:
        (about,) = client.get("/api/collections").json()
        assert (about["craters"], about["positions"]) == (True, False)
        craters = client.get("/api/collections/craters").json()
        assert craters["labels"] == ["2", "1", "0", "twin"]  # 50, 40, 30 and 30 km
        assert craters["images"][0] == ["crater_2"]
        assert (craters["radius_km"], craters["total"], craters["cut"]) == (1737.4, 4, False)
        assert craters["mosaic"] == {"west": 0.0, "south": -60.0, "east": 180.0, "north": 60.0}
        picture = client.get("/api/mosaic")
        assert (picture.content, picture.headers["content-type"]) == (b"RIFF, a picture", "image/webp")
        again = client.get("/api/mosaic", headers={"if-none-match": picture.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_without_a_mosaic_there_is_none(moon: Path) -> None:
    settings = ServiceSettings({"moon": moon / "moon.resight"}, workers=1)
    with TestClient(create_app(settings), base_url=HERE) as client:
        assert client.get("/api/collections/craters").json()["mosaic"] is None
        assert client.get("/api/mosaic").status_code == 404
