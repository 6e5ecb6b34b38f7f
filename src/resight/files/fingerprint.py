"""Fingerprints: content in, the same short text out for the same content (hexadecimal SHA-256, cut to `length`).

Spaces, caches and stored files are named by them, so a fingerprint never changes.
"""

import base64
import hashlib
from pathlib import Path

FULL = 64  # hexadecimal digits of SHA-256


def fingerprint(content: bytes | str, length: int = FULL) -> str:
    """Of bytes, or of text in UTF-8."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:length]


def fingerprint_file(path: Path, length: int = FULL) -> str:
    """Of a file's bytes, which are read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:length]


def csp_hash(text: str) -> str:
    """Of an inline script or style, as a Content-Security-Policy header names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
