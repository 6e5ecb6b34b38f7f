"""The files of the page and of /docs: open to all, complete, and those of a known release."""

import hashlib
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import resight
from resight.apps.service.api_keys import make_key
from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings

DOCS = Path(resight.__file__).parent / "apps" / "api_docs"
RELEASE = {  # SHA-256 of the files in swagger-ui-dist 5.35.0
    "swagger-ui-bundle.js": "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
    "swagger-ui.css": "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
    "LICENSE": "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
}


@pytest.fixture(scope="module")
def client() -> TestClient:
    settings = ServiceSettings(collections={}, keys=(make_key("curator", "k" * 20),))
    return TestClient(create_app(settings), base_url="http://photos.example")


def test_docs_and_their_files_need_no_key(client: TestClient) -> None:
    page = client.get("/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "unsafe" not in page.headers["content-security-policy"]
    named = re.findall(r'(?:src|href)="(/[^"]+)"', page.text)
    assert len(named) >= 4
    assert [name for name in named if client.get(name).status_code != 200] == []


def test_docs_serve_no_other_file(client: TestClient) -> None:
    names = ("LICENSE", "none.js", "..%2fweb%2findex.html", "%2e%2e/service/examples.json")
    assert [client.get(f"/docs/{name}").status_code for name in names] == [404] * len(names)


@pytest.mark.parametrize("name", RELEASE)
def test_swagger_ui_is_that_of_its_release(name: str) -> None:
    assert hashlib.sha256((DOCS / name).read_bytes()).hexdigest() == RELEASE[name]
