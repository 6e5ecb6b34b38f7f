r"""Names from elsewhere: a folder and a name that a stranger may have chosen in, a path inside that folder out.

A recipe, a collection, an archive, a manifest of a shard, an upload or an object store may name a file. Every such name
goes through `resolve_inside` before it meets a disk. It refuses, with a ResightError:

    ..  /etc/x  C:\x  \\host\x  s3://…          names that leave the folder, on this system or on another
    \0  line breaks, bidirectional overrides    names that a terminal or a log shows as something else
    CON  NUL  LPT1.txt  "name."  "name "        names that Windows reads as devices or as other names
    a link that leads out of the folder         also one in the middle of the path
    300 letters in one part, 1,024 in all       names that no file system keeps

A remote folder (s3://…) has no links: its names are checked by their letters alone.
"""

import os
import re
from pathlib import Path

from resight.errors import InputError, ResightError
from resight.files.remote import is_remote

LONGEST = 1024  # bytes of a name in UTF-8
LONGEST_PART = 255  # of one folder or file
DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
DRIVE = re.compile("[A-Za-z]:")
# Control characters, surrogates, line separators and marks that change the direction of writing.
DECEPTIVE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def resolve_inside(
    root: Path, name: str, *, what: str, error: type[ResightError] = InputError, links: bool = False
) -> Path:
    """`root / name`, if it lies inside `root`; else an `error` that calls the name `what`.

    The file need not exist. Links are followed as far as the path exists, so check again after a folder was made.
    With `links=True` they may lead out: for folders that are only read and where the user alone makes links, such as
    data sets, whose images often lie on another disk.
    """
    fault = find_fault(name)
    path = root / name if not fault else root
    if not fault and not links and not is_remote(root):
        fault = _find_escape(root, path)
    if fault:
        raise error(
            f"{what} is named {show(name)}",
            expected=f"a plain name inside {root}",
            actual=fault,
            fix="do not use files from a source that you do not trust; if you made it yourself, rename the file",
        )
    return path


def find_fault(name: str) -> str:
    """Why a relative name in POSIX form is refused by its letters alone; empty if it is not."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts:
        return "an empty name"
    if DECEPTIVE.search(name):
        return "control characters"
    if len(name.encode()) > LONGEST:
        return f"more than {LONGEST:,} bytes"
    if (
        name.startswith("/")
        or "\\" in name
        or DRIVE.match(name)
        or is_remote(name)
        or (":" in name and os.name == "nt")
    ):
        return "an absolute name, a drive, an address or a backslash"
    for part in parts:
        if part == "..":
            return "a name that leads out of its folder"
        if len(part.encode()) > LONGEST_PART:
            return f"a part of more than {LONGEST_PART} bytes"
        if DEVICES.fullmatch(part) or part != part.rstrip(". "):
            return "a name that some systems read as a device or as another name"
    return ""


def show(name: object) -> str:
    """A foreign name for a message: quoted, escaped and cut."""
    text = ascii(name)
    return text if len(text) <= 120 else f"{text[:117]}…"


def _find_escape(root: Path, path: Path) -> str:
    try:
        home, target = root.resolve(), path.resolve()
    except (OSError, RuntimeError) as error:  # a loop of links, a part that may not be read
        return f"{type(error).__name__} while its links are followed"
    return "" if target.is_relative_to(home) and target != home else "a link that leads out of its folder"
