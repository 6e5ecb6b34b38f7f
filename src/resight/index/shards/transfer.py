"""Send the files of a shard to a host that does not see their folder, piece by piece."""

from collections.abc import Iterator
from pathlib import Path

from resight.errors import CollectionError, ResightError
from resight.index.shards.hosts import Host
from resight.index.shards.shard_manifest import REBUILD, Shard, check_sizes, locate_file

PIECE = 16 << 20  # bytes of a file per call


def send(shard: Shard, folder: Path, host: Host) -> ResightError | None:
    """Returns the host's error, or None. Raises a CollectionError if the files in `folder` are incomplete."""
    check_sizes(folder, shard.files)
    error: ResightError | None = host.call("prepare", shard)
    for file in shard.files:
        for piece in _read(locate_file(folder, file.name)):
            error = error or host.call("receive", shard, file.name, piece)
            if error is not None:
                return error
    return error or host.call("commit", shard, size=shard.size)


def _read(path: Path) -> Iterator[bytes]:
    """The pieces of a file; an empty file gives one empty piece."""
    try:
        with path.open("rb") as opened:
            yield opened.read(PIECE)
            while piece := opened.read(PIECE):
                yield piece
    except OSError as error:
        raise CollectionError(f"{path} cannot be read", actual=str(error), fix=REBUILD) from error
