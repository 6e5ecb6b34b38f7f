"""A key once given → a cookie that stands for it, signed and with an end. No list of sessions is kept."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Sequence

from resight.apps.service.keys import Key

COOKIE = "resight_session"
LIFETIME = 12 * 3600  # seconds


def sign(key: Key, secret: str, now: float | None = None) -> str:
    """The value of the cookie. It holds a part of the key's digest, so that it ends when the key is replaced."""
    content = json.dumps([key.name, key.digest[:16], int((time.time() if now is None else now) + LIFETIME)]).encode()
    return f"{_to_text(content)}.{_to_text(_seal(content, secret))}"


def verify(value: str, secret: str, keys: Sequence[Key], now: float | None = None) -> Key | None:
    """The key that a cookie stands for; None when it is forged, has ended, or the key is no more."""
    content, _, seal = value.partition(".")
    try:
        data, given = _to_bytes(content), _to_bytes(seal)
    except (ValueError, binascii.Error):
        return None
    if not hmac.compare_digest(given, _seal(data, secret)):
        return None
    name, digest, end = json.loads(data)  # ours, by its seal
    if end < (time.time() if now is None else now):
        return None
    return next((key for key in keys if key.name == name and key.digest.startswith(digest)), None)


def _seal(content: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode(), b"session:" + content, hashlib.sha256)


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _to_bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
