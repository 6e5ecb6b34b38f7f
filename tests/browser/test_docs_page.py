"""/docs in a real Chromium: Swagger UI works under the service's policy, and loads nothing from elsewhere."""

from pathlib import Path
from typing import Any

from support.browsing import WAIT

KEY = "sesame-of-the-curator"


def test_the_api_is_shown_and_tried_without_another_server(chromium: Any, server: str, folder: Path) -> None:
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{server}docs")
    page.locator("#operations-search-search").wait_for(timeout=WAIT)
    assert page.locator(".opblock").count() >= 35
    assert complaints == []

    page.locator("button.authorize").first.click()
    bearer = page.locator(".auth-container", has_text="bearer").first
    bearer.locator("input").fill(KEY)
    bearer.get_by_role("button", name="Apply credentials").click()
    page.get_by_role("button", name="Close", exact=True).first.click()

    page.locator("#operations-search-search .opblock-summary-control").click()
    search = page.locator("#operations-search-search")
    search.locator("input[type=file]").wait_for(timeout=WAIT)
    search.locator("input[type=file]").set_input_files(folder / "query.jpg")
    search.get_by_role("button", name="Execute").click()
    answer = search.locator(".live-responses-table tbody")
    answer.locator(".response-col_description").first.wait_for(timeout=WAIT)
    assert answer.locator(".response-col_status").first.inner_text().startswith("200"), answer.inner_text()
    assert "scene_03.jpg" in answer.inner_text()
    page.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith((server, "data:", "blob:"))] == []
