"""Names of uploaded files in, ids of images out; an id is text and never becomes a path.

A file without an id of its own is called by the last part of its name. Where that name is taken by other content, the
beginning of the content's hash is put before the suffix, so that the same file sent again gets the same id again.
"""

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from resight.errors import InputError

LONGEST_NAME, LONGEST_ID = 120, 500  # characters
NAMELESS = "image"
MARK = 8  # characters of the hash


def choose_ids(
    files: Sequence[tuple[str, str]], ids: Sequence[str], find_content: Callable[[str], str | None]
) -> list[str | None]:
    """An id for each file (its name and hash): the one of `ids` where they were given, else one made of its name.

    `find_content` gives the hash of the image that has an id already, or None. A file that was sent twice gets its id
    once.
    """
    chosen: dict[str, str] = {}
    result: list[str | None] = []
    for number, (name, sha256) in enumerate(files):
        id = ids[number] if ids else choose_id(name, sha256, lambda id: chosen.get(id) or find_content(id))
        result.append(None if id in chosen else id)
        chosen[id] = sha256
    return result


def choose_id(name: str, sha256: str, find_content: Callable[[str], str | None]) -> str:
    """An id for a file; `find_content` gives the hash of the image that has an id already, or None."""
    cleaned = clean_name(name)
    if find_content(cleaned) in (None, sha256):
        return cleaned
    path = PurePosixPath(cleaned)
    return f"{path.stem}-{sha256[:MARK]}{path.suffix}"


def clean_name(name: str) -> str:
    """What remains of a client's file name: no folders, no control characters, not too long, not empty."""
    last = unicodedata.normalize("NFC", name.replace("\\", "/")).rpartition("/")[2]
    shown = "".join(letter for letter in last if unicodedata.category(letter)[0] != "C").strip().strip(".").strip()
    path = PurePosixPath(shown or NAMELESS)
    suffix = path.suffix[:10]
    return (path.stem[: LONGEST_NAME - len(suffix)] + suffix).strip()


def check_ids(ids: Sequence[str]) -> None:
    """Ids that a client gave."""
    for id in ids:
        if not id.strip() or id != id.strip() or len(id) > LONGEST_ID or not is_plain_text(id):
            raise InputError(
                "an id cannot be used",
                expected=f"1 to {LONGEST_ID} characters, none of them a control character, no space at either end",
                actual=repr(id[:80]),
                fix="choose another id",
            )
    if len(set(ids)) < len(ids):
        repeated = next(id for number, id in enumerate(ids) if id in ids[:number])
        raise InputError(
            "an id was given twice",
            expected="ids that differ",
            actual=repr(repeated[:80]),
            fix="give each file its own",
        )


def is_plain_text(text: str) -> bool:
    """Can it be stored and shown? Control characters and halves of characters cannot."""
    return not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)
