"""`resight serve`: checks the options, then starts the service."""

import os
import ssl
import sys
import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.search import report_local_indexes
from resight.errors import InputError, ResightError
from resight.files.remote import is_remote

if TYPE_CHECKING:
    from resight.data.maps.overview import Overview

RATE_LIMIT = 20.0  # requests per second and client, beyond loopback
MEGABYTE = 2**20


class Log(StrEnum):
    text = "text"
    json = "json"
    none = "none"


def serve(
    collections: Annotated[
        list[Path], typer.Argument(metavar="COLLECTION…", help="Collections; the first is shown first.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; beyond loopback, clients need a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8080,
    processes: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the work.")] = 1,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Parallel searches per process. [cores]")] = None,
    waiting: Annotated[int | None, typer.Option(min=0, help="Waiting searches per process. [8 × workers]")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Time limit of a search, in seconds.")] = 30.0,
    engine: Annotated[
        str, typer.Option(metavar="ENGINE", help="Where to search: local, ray, ray://HOST:PORT or ray://auto.")
    ] = "local",
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Access keys; `resight keys make` adds one.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse to add, change or delete anything.")] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another host name of this machine.")
    ] = None,
    cors: Annotated[list[str] | None, typer.Option(metavar="ORIGIN", help="A site that may call the API.")] = None,
    max_upload: Annotated[float, typer.Option(min=0.1, max=2000, metavar="MB", help="Size limit of a request.")] = 32.0,
    rate: Annotated[
        float | None, typer.Option(min=0, help="Requests per second and client; 0: no limit. [0 on loopback, else 20]")
    ] = None,
    connections: Annotated[int, typer.Option(min=1, help="Connections per process and client address.")] = 64,
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(metavar="CIDR", help="A proxy whose X-Forwarded-For header is believed.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS certificate (PEM) with its chain.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Private key (PEM) of the certificate.")] = None,
    audit_log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Log every change with the name of the key, as JSON Lines.")
    ] = None,
    reports: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Evaluation reports (.html) to show.")] = None,
    training: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Training runs whose curves to show.")] = None,
    review: Annotated[list[Path] | None, typer.Option(metavar="FOLDER", help="A review of pairs to show.")] = None,
    map_file: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="Map of the globe to show below its craters.")
    ] = None,
    map_bounds: Annotated[
        str | None, typer.Option(metavar="W,S,E,N", help="Its edges in degrees. [GeoTIFF: its own, else the globe]")
    ] = None,
    show_paths: Annotated[bool, typer.Option("--show-paths", help="Show file paths to remote clients too.")] = False,
    log: Annotated[Log, typer.Option(help="One line per request, on stderr.")] = Log.text,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve collections: a web page and an HTTP API.

    The page is for searching, browsing and reviewing.
    """
    from resight.apps.service.api_keys import read_keys
    from resight.apps.service.audit_log import AuditLog
    from resight.apps.service.client_address import check_networks
    from resight.apps.service.server import listen
    from resight.apps.service.server import serve as run
    from resight.apps.service.settings import LOOPBACK, ServiceSettings, count_cores
    from resight.collection import metadata

    keys = read_keys(key_file)
    is_local = host in LOOPBACK
    if not is_local and not keys:
        raise InputError(
            f"will not listen on {host} without a key",
            expected="keys for clients on other machines",
            actual="no --key-file, and RESIGHT_API_KEY is not set",
            fix="give --key-file FILE, set RESIGHT_API_KEY, or listen on 127.0.0.1",
        )
    check_access(bool(keys), cors or [], tls_cert, tls_key)
    check_networks(trusted_proxy or [])
    AuditLog(audit_log).check()
    check_folders([*(folder for folder in (reports, training) if folder), *(review or [])])
    check_engine(engine, processes)
    mosaic = read_mosaic(map_file, map_bounds)
    for path in check_collections(collections):
        report_local_indexes(metadata.read(path).recipe, engine)
    with listen(host, port) as listener:
        address = (
            f"{'https' if tls_cert else 'http'}://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"
        )
        settings = ServiceSettings(
            collections=name_collections(collections),
            host=host,
            port=listener.getsockname()[1],
            processes=processes,
            engine=engine,
            keys=keys,
            # The service stores uploads beside the collection, which a remote collection does not allow.
            read_only=read_only or any(map(is_remote, collections)),
            max_upload_bytes=int(max_upload * MEGABYTE),
            workers=workers or max(1, count_cores() // processes),
            waiting=-1 if waiting is None else waiting,
            timeout=timeout,
            rate=(0.0 if is_local else RATE_LIMIT) if rate is None else rate,
            connections=connections,
            trusted_proxies=tuple(trusted_proxy or ()),
            tls_cert=tls_cert,
            tls_key=tls_key,
            audit_log=audit_log and audit_log.absolute(),
            allow_hosts=tuple(name.lower() for name in allow_host or ()),
            show_paths=show_paths or (is_local and not keys),  # a local client can read the disk anyway
            reports=reports,
            training=training,
            reviews=tuple(review or ()),
            mosaic=mosaic.file if mosaic else None,
            mosaic_bounds=(mosaic.west, mosaic.south, mosaic.east, mosaic.north) if mosaic else (),
            cors=tuple(cors or ()),
            log=log.value,
        )
        print(f"serving {', '.join(settings.collections)} at {address} (Ctrl-C stops)", flush=True)
        if open_page:
            webbrowser.open(address)
        run(settings, listener)


def name_collections(paths: list[Path]) -> dict[str, Path]:
    """Collections by the name of their folder, without .resight."""
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
    """Fails if the engine does not answer, or if each of several processes would start a cluster of its own."""
    from resight.collection.engine import start_engine

    if engine == "ray" and processes > 1:
        raise InputError(
            "several processes need one cluster",
            expected="the address of a running cluster",
            actual=f"--engine ray --processes {processes}",
            fix="start one with `ray start --head` and use --engine ray://auto",
        )
    start_engine(engine)


def check_access(has_keys: bool, cors: list[str], cert: Path | None, key: Path | None) -> None:
    """Fails for options that would open the service to everybody, and for incomplete TLS."""
    if "*" in cors and not has_keys:
        raise InputError(
            "will not let every site use a service without keys",
            expected="--cors with the origins of certain sites, or keys",
            actual="--cors '*' without keys",
            fix="name the origin, such as --cors https://example.org, or give --key-file FILE",
        )
    if (cert is None) != (key is None):
        raise InputError(
            "TLS needs a certificate and its private key",
            expected="--tls-cert and --tls-key",
            actual="one of them",
            fix="give both, or neither",
        )
    for file in filter(None, (cert, key)):
        if not file.is_file():
            raise InputError(f"there is no file {file}", expected="a PEM file", fix="check the path")
    if cert and key:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
        except (OSError, ssl.SSLError) as error:
            raise InputError(
                f"cannot use the certificate {cert} with the key {key}",
                expected="a certificate and its own private key, as PEM files without a password",
                actual=str(error),
                fix="check the files and their permissions",
            ) from error


def check_collections(paths: list[Path]) -> list[Path]:
    """Those that open. A path that does not exist is an error; a damaged collection is reported and tried later."""
    from resight.collection import open_collection

    good = []
    for path in paths:
        if not is_remote(path) and not os.path.lexists(path):
            open_collection(path, must_exist=True)  # fails, and says what to do
        try:
            len(open_collection(path, must_exist=True))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a damaged store may also panic below Python
            reason = str(error) if isinstance(error, ResightError) else f"  {type(error).__name__}: {error}"
            terminal.echo(f"warning: {path} cannot be served now; resight tries again\n{reason}", file=sys.stderr)
        else:
            good.append(path)
    return good


def read_mosaic(path: Path | None, bounds: str | None) -> "Overview | None":
    """The reduced map of the globe; None where the user named none."""
    from resight.data.maps.overview import read_overview
    from resight.search.request import parse_bounds

    edges = parse_bounds(bounds, "--map-bounds")
    if path is None and edges:
        raise InputError("--map-bounds without a map", expected="--map FILE", actual="no --map", fix="name the map")
    return None if path is None else read_overview(path, edges)


def check_folders(folders: list[Path]) -> None:
    """Fails before the service starts if a folder is missing."""
    for folder in folders:
        if not folder.is_dir():
            raise InputError(
                f"there is no folder {folder}",
                expected="a readable folder",
                actual="a file" if os.path.lexists(folder) else "nothing at that path",
                fix="check the path",
            )
