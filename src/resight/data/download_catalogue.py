"""The catalogue of downloads: downloads.toml in, what can be downloaded of each data set out (`find_entry`).

    [gldv2]                                         a data set of resight.data.sets
    title, source, licence                          shown before a download
    layout = ["train/0/1/2/….jpg"]                  files below ROOT, as the reader of the data set expects them
    check = ["which=clean"]                         settings for `resight data check`, after the download
    reason, manual                                  why people must do it themselves, and the steps ("ROOT": the folder)

    [[gldv2.parts]]
    name, about; optional = true                    an optional part is downloaded only if --only names it
    reason, manual                                  as above, for this part

    [[gldv2.parts.files]]
    url = "https://…/images_{number:03d}.tar"       "{number…}" only with numbers = [first, last]
    to = "train/"                                   a file below ROOT, or, with a slash at its end, a folder for it
    unpack = true, flat = true                      an archive, unpacked into the folder `to`; flat: without its folders
    bytes = 1_000_000_000                           about
    checksum = "sha256:…"                           or md5
    checksums = "md5:https://…"                     a file that holds the checksum, alone or beside the file's name

Only addresses that the makers publish are in it. A data set without an entry gets one from what its reader says in
`published`, with steps for people.
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from resight import plugins
from resight.data import sets
from resight.data.sets import Published
from resight.errors import InputError, RecipeError, did_you_mean
from resight.files.documents import load_toml
from resight.files.inside import find_fault

PACKAGE = "resight.data.sets"
KINDS = ("md5:", "sha256:")


@dataclass(frozen=True)
class RemoteFile:
    url: str
    to: str
    unpack: bool = False
    flat: bool = False
    bytes: int | None = None
    checksum: str = ""
    checksums: str = ""
    numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if find_fault(self.to) and self.to != "./":
            raise _refuse(f"{self.url} goes to {self.to!r}", "a path below ROOT")
        if self.unpack and not self.to.endswith("/"):
            raise _refuse(f"{self.url} is unpacked to {self.to!r}", "a folder, with a slash at its end")
        if find_fault(self.name):
            raise _refuse(f"{self.url} ends without a name", "the address of a file")
        for text, start in ((self.checksum, ""), (self.checksums, "http")):
            if text and not any(text.startswith(kind + start) for kind in KINDS):
                raise _refuse(f"{self.url} has the checksum {text!r}", "md5:… or sha256:…")
        if self.numbers and (len(self.numbers) != 2 or self.numbers[0] > self.numbers[1]):
            raise _refuse(f"{self.url} has the numbers {list(self.numbers)}", "the first and the last")

    @property
    def name(self) -> str:
        """Its file name."""
        return PurePosixPath(unquote(urlsplit(self.url).path)).name

    @property
    def target(self) -> PurePosixPath:
        """The file below ROOT, or the folder that an archive is unpacked into."""
        return (
            PurePosixPath(self.to) / self.name if self.to.endswith("/") and not self.unpack else PurePosixPath(self.to)
        )

    def expand(self, wanted: range | None) -> "list[RemoteFile]":
        """One file per number; `wanted` leaves out other numbers."""
        if not self.numbers:
            return [self]
        numbers = range(self.numbers[0], self.numbers[1] + 1)
        return [
            replace(
                self,
                url=self.url.format(number=number),
                checksums=self.checksums.format(number=number),
                numbers=(),
            )
            for number in numbers
            if wanted is None or number in wanted
        ]


@dataclass(frozen=True)
class Part:
    name: str
    about: str
    files: tuple[RemoteFile, ...] = ()
    optional: bool = False
    reason: str = ""
    manual: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return sum(len(file.expand(None)) for file in self.files)

    @property
    def bytes(self) -> int:
        """About, of the files whose size the catalogue knows."""
        return sum(file.bytes * len(file.expand(None)) for file in self.files if file.bytes is not None)

    @property
    def unknown(self) -> int:
        """Files whose size it does not know."""
        return sum(len(file.expand(None)) for file in self.files if file.bytes is None)


@dataclass(frozen=True)
class Entry:
    title: str
    source: str
    licence: str
    layout: tuple[str, ...]
    check: tuple[str, ...] = ("",)
    reason: str = ""
    manual: tuple[str, ...] = ()
    parts: tuple[Part, ...] = field(default=())


def find_entry(name: str, catalogue: Path | None = None) -> Entry:
    """The entry of a data set, from resight's catalogue or the file `catalogue`."""
    table = _read(catalogue)
    known = sorted({*table, *plugins.names(PACKAGE)} if catalogue is None else table)
    if name in table:
        return plugins.configure(Entry, table[name], f"the download {name!r}")
    if name not in known:
        raise InputError(
            f"there is no data set called {name!r}",
            expected=f"one of {', '.join(known)}",
            actual=repr(name),
            fix=did_you_mean(name, known, "check the spelling; `resight data list` names them"),
        )
    published: Published | None = getattr(sets.build(name), "published", None)
    return Entry(
        title=name,
        source="; ".join(published.downloads) if published else "your own images",
        licence=published.licence if published else "yours",
        layout=(),
        reason="resight knows no address for it",
        manual=published.downloads if published else ("put your images anywhere, and give their folder or file",),
    )


def choose_files(name: str, entry: Entry, only: Sequence[str]) -> list[tuple[Part, RemoteFile]]:
    """The files to download: of all parts that are not optional, or of those that `only` names.

    An item of `only` is a part, a pattern such as rparis6k*, or a part and numbers: train:0-9.
    """
    if not only:
        return [
            (part, one) for part in entry.parts if not part.optional for file in part.files for one in file.expand(None)
        ]
    chosen: dict[str, tuple[Part, RemoteFile]] = {}
    for item in only:
        pattern, colon, numbers = item.partition(":")
        found = [part for part in entry.parts if fnmatch.fnmatchcase(part.name, pattern)]
        if not found:
            parts = [part.name for part in entry.parts]
            raise InputError(
                f"{name} has no part {pattern!r}",
                expected=f"one of {', '.join(parts) or '(it has none)'}",
                actual=item,
                fix=did_you_mean(pattern, parts, f"`resight data get {name} --list` shows the parts"),
            )
        wanted = _parse_numbers(item, numbers) if colon else None
        expanded = [(part, one) for part in found for file in part.files for one in _select(file, wanted)]
        if wanted is not None and not expanded:
            ranges = [
                f"{part.name}:{file.numbers[0]}-{file.numbers[1]}"
                for part in found
                for file in part.files
                if file.numbers
            ]
            raise InputError(
                f"{name} has no files {item!r}",
                expected=", ".join(ranges) or "a part whose files are numbered",
                actual=item,
                fix="leave out the numbers for all of them",
            )
        chosen |= {file.url: (part, file) for part, file in expanded}
    return list(chosen.values())


def _select(file: RemoteFile, wanted: range | None) -> list[RemoteFile]:
    return [] if wanted is not None and not file.numbers else file.expand(wanted)


def _parse_numbers(item: str, text: str) -> range:
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() or not dash)):
        raise InputError("cannot read the numbers", expected="PART:5 or PART:0-9", actual=item, fix="e.g. train:0-9")
    return range(int(first), int(last or first) + 1)


def _read(catalogue: Path | None) -> dict[str, Any]:
    source = catalogue or resources.files("resight.data").joinpath("downloads.toml")
    try:
        return load_toml(source.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read the catalogue {source}", expected="a TOML file", actual=str(error), fix="correct it"
        ) from error


def _refuse(problem: str, expected: str) -> RecipeError:
    return RecipeError(f"the catalogue of downloads: {problem}", expected=expected, actual="another", fix="correct it")
