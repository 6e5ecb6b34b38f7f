"""Answers in JSON that every reader takes: ASCII, and no number that JSON has no word for."""

import json
from typing import Any

from fastapi.responses import JSONResponse


class Json(JSONResponse):
    """In ASCII: names of files may hold what no encoding of text can."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
