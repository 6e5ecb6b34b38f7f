"""The address of an export in, an open Backend out.

    qdrant://HOST:PORT/NAME       on a server (qdrant:https://HOST:PORT/NAME where it speaks HTTPS)
    qdrant:FOLDER/NAME            in a folder: NAME is a collection of the client's local mode, or an Edge shard
    qdrant:FOLDER                 the same, with the name of the collection that is searched

The key of a server comes from the environment variable RESIGHT_QDRANT_KEY.
"""

from pathlib import Path
from urllib.parse import urlsplit

from resight.errors import CollectionError, InputError
from resight.files.inside import find_fault
from resight.index.qdrant_backend.backend import Backend, load_backend

LOCAL_FILE, EDGE_FILE = "meta.json", "edge_config.json"


def open_engine(engine: str, usual_name: str) -> Backend:
    """The export that `--engine` names; it must exist."""
    rest = engine.removeprefix("qdrant:")
    if rest.startswith("//"):
        rest = f"http:{rest}"
    if rest.startswith(("http://", "https://")):
        url, name = split_url(rest)
        return open_server(url, name or usual_name)
    path = Path(rest)
    for folder, name in ((path, usual_name), (path.parent, path.name)):
        if (folder / name / EDGE_FILE).is_file():
            return open_folder(folder, name, edge=True)
        if (folder / LOCAL_FILE).is_file():
            return open_folder(folder, name, edge=False)
    raise CollectionError(
        f"there is no export in {path}",
        expected=f"a folder with {LOCAL_FILE} (local mode), or with a folder that has {EDGE_FILE} (Edge)",
        actual="a folder without either" if path.is_dir() else "no such folder",
        fix="check the path, or export the collection first: resight export COLLECTION --to qdrant --folder FOLDER",
    )


def open_server(url: str, name: str) -> Backend:
    backend: Backend = load_backend("client").open_server(url, check_name(name))
    return backend


def open_folder(folder: Path, name: str, *, edge: bool) -> Backend:
    backend: Backend
    if edge:
        backend = load_backend("edge").open_edge(folder / check_name(name))
    else:
        backend = load_backend("client").open_folder(folder, check_name(name))
    return backend


def split_url(text: str) -> tuple[str, str]:
    """http://HOST:PORT/PREFIX/NAME → http://HOST:PORT/PREFIX and NAME, which may be empty."""
    parts = urlsplit(text)
    prefix, _, name = parts.path.rpartition("/")
    if not parts.netloc:
        raise InputError(
            f"{text!r} is not the address of an export",
            expected="qdrant://HOST:PORT/NAME",
            actual=text,
            fix="e.g. qdrant://127.0.0.1:6333/photos",
        )
    return f"{parts.scheme}://{parts.netloc}{prefix}", name


def name_export(collection: Path) -> str:
    """The name of an export by default: photos.resight → photos."""
    return collection.resolve().stem or "resight"


def check_name(name: str) -> str:
    """The name itself, if it can be that of a folder, which Qdrant makes."""
    if find_fault(name) or any(letter in name for letter in '/:*?"<>|'):
        raise InputError(
            f"{name!r} cannot be the name of an export",
            expected='1 to 255 letters, none of them / \\ : * ? " < > |',
            actual=repr(name),
            fix="give another --name",
        )
    return name
