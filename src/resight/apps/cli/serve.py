"""`resight serve`."""

import os
import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from resight.apps.cli.search import tell_local
from resight.errors import InputError
from resight.files.remote import is_remote

BUSY_RATE = 20.0  # requests a second of one client, beyond loopback
MEGABYTE = 2**20


class Log(StrEnum):
    text = "text"
    json = "json"
    none = "none"


def serve(
    collections: Annotated[
        list[Path], typer.Argument(metavar="COLLECTION…", help="Collections; the first is shown first.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; beyond loopback a key is needed.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8080,
    processes: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the work.")] = 1,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Searches at once, a process. [cores]")] = None,
    waiting: Annotated[int | None, typer.Option(min=0, help="Searches that may wait, a process. [8 × workers]")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that a search may take.")] = 30.0,
    engine: Annotated[
        str, typer.Option(metavar="ENGINE", help="Where to search: local, ray, ray://HOST:PORT or ray://auto.")
    ] = "local",
    key_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Lines NAME KEY [read].")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Nothing may be added, changed or deleted.")] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name that this machine goes by.")
    ] = None,
    cors: Annotated[list[str] | None, typer.Option(metavar="ORIGIN", help="A site whose pages may ask.")] = None,
    max_upload: Annotated[float, typer.Option(min=0.1, max=2000, metavar="MB", help="Of one request.")] = 32.0,
    rate: Annotated[
        float | None, typer.Option(min=0, help="Requests a second of one client; 0: no limit. [0 on loopback, else 20]")
    ] = None,
    reports: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Evaluation reports (.html) to show.")] = None,
    training: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Trainings whose curves are shown.")] = None,
    review: Annotated[list[Path] | None, typer.Option(metavar="FOLDER", help="A review of pairs to show.")] = None,
    show_paths: Annotated[bool, typer.Option("--show-paths", help="Tell others, too, where files lie.")] = False,
    log: Annotated[Log, typer.Option(help="A line for each request, on stderr.")] = Log.text,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve collections: a page to search, browse and review in, and an HTTP API."""
    from resight.apps.service.api_keys import read_keys
    from resight.apps.service.server import listen
    from resight.apps.service.server import serve as run
    from resight.apps.service.settings import LOOPBACK, ServiceSettings, count_cores
    from resight.collection import metadata

    keys = read_keys(key_file)
    is_local = host in LOOPBACK
    if not is_local and not keys:
        raise InputError(
            f"will not listen on {host} without a key",
            expected="a key for everybody who asks from elsewhere",
            actual="no --key-file, and RESIGHT_API_KEY is not set",
            fix="give --key-file FILE, set RESIGHT_API_KEY, or listen on 127.0.0.1",
        )
    check_folders(collections, [folder for folder in (reports, training) if folder], review or [])
    check_engine(engine, processes)
    for path in collections:
        tell_local(metadata.read(path).recipe, engine)
    with listen(host, port) as listener:
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"
        settings = ServiceSettings(
            collections=name_collections(collections),
            host=host,
            port=listener.getsockname()[1],
            processes=processes,
            engine=engine,
            keys=keys,
            # What is uploaded is kept beside the collection, which elsewhere is no place for it.
            read_only=read_only or any(map(is_remote, collections)),
            max_upload_bytes=int(max_upload * MEGABYTE),
            workers=workers or max(1, count_cores() // processes),
            waiting=-1 if waiting is None else waiting,
            timeout=timeout,
            rate=(0.0 if is_local else BUSY_RATE) if rate is None else rate,
            allow_hosts=tuple(name.lower() for name in allow_host or ()),
            show_paths=show_paths or (is_local and not keys),  # whoever asks from here could look for himself
            reports=reports,
            training=training,
            reviews=tuple(review or ()),
            cors=tuple(cors or ()),
            log=log.value,
        )
        print(f"serving {', '.join(settings.collections)} at {address} (Ctrl-C stops)", flush=True)
        if open_page:
            webbrowser.open(address)
        run(settings, listener)


def name_collections(paths: list[Path]) -> dict[str, Path]:
    """By the name of the folder without .resight."""
    found = [path if is_remote(path) else path.resolve() for path in paths]
    named = {path.name.removesuffix(".resight"): path for path in found}
    if len(named) < len(paths):
        raise InputError(
            "two collections have the same name",
            expected="folders with different names",
            actual=", ".join(map(str, paths)),
            fix="rename one of the folders, or make a link to it with another name",
        )
    return named


def check_engine(engine: str, processes: int) -> None:
    """That it answers; several processes share a cluster that runs, instead of starting one each."""
    from resight.collection.build_pipeline import start_engine

    if engine == "ray" and processes > 1:
        raise InputError(
            "several processes need one cluster",
            expected="the address of a cluster that runs",
            actual=f"--engine ray --processes {processes}",
            fix="start one with `ray start --head`, and name it: --engine ray://auto",
        )
    start_engine(engine)


def check_folders(collections: list[Path], shown: list[Path], reviews: list[Path]) -> None:
    """Before anything is started: what is missing should be said at once."""
    from resight.collection import open_collection

    for path in collections:
        open_collection(path, must_exist=True)
    for folder in [*shown, *reviews]:
        if not folder.is_dir():
            raise InputError(
                f"there is no folder {folder}",
                expected="a folder that can be read",
                actual="a file" if os.path.lexists(folder) else "nothing at that path",
                fix="check the path",
            )
