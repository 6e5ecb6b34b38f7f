"""What the tests of the page do in a browser: drop a file, wait, read what is shown."""

import base64
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe

WAIT = 30_000  # milliseconds
DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type: name.endsWith("jpg") ? "image/jpeg" : "" }));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }
}"""


def drop(page: Any, file: Path) -> None:
    page.evaluate(DROP, [file.name, base64.b64encode(file.read_bytes()).decode()])


def wait_for_answers(page: Any) -> None:
    page.locator(".about-answer").wait_for(timeout=WAIT)


def list_cards(page: Any) -> list[str]:
    return [str(card.get_attribute("data-id")) for card in page.locator(".card[data-id]").all()]


def read_drawn_box(card: Any) -> tuple[float, float, float, float]:
    rect = card.locator("rect.edge")
    x, y, width, height = (float(rect.get_attribute(name)) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def find_violations(page: Any) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {[node['html'][:120] for node in one['nodes']]}" for one in found]
