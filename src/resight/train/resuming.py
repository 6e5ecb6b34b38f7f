"""Whether a training may go on from a checkpoint. In: how it was begun, and what is asked for now. Out: what changed.

Images, processes, network and most settings have to be the same. Those that help after a loss that was not a number may
change; that is noted, as the result is then no longer that of one recipe.
"""

from pathlib import Path
from typing import Any

from resight.errors import InputError
from resight.train.checkpoints import Progress

FREE = ("workers", "save_every", "patience", "audit", "unreadable")
NOTED = ("rate", "clip", "precision")


def compare(found: Progress, asked: Progress, path: Path) -> tuple[str, ...]:
    """What has changed, in words; refuses to go on with something else than what was begun."""
    then, now = _list_facts(found), _list_facts(asked)
    if not found.network:  # of a version that did not keep it
        now = {key: value for key, value in now.items() if not key.startswith("encoder.")}
    changed = [key for key in now if then.get(key) != now[key]]
    refused = [key for key in changed if key not in (*FREE, *NOTED)]
    if refused:
        raise InputError(
            f"{path} belongs to another training",
            expected=", ".join(f"{key} = {then.get(key)}" for key in refused),
            actual=", ".join(f"{key} = {now[key]}" for key in refused),
            fix="give the same recipe, data and --processes as before (rate, clip and precision may change), "
            "or start again in another --out",
        )
    if found.finished:
        return ()
    return tuple(f"{key} = {now[key]} after step {found.step}, {then[key]} before" for key in changed if key in NOTED)


def _list_facts(progress: Progress) -> dict[str, Any]:
    network = {f"encoder.{key}": value for key, value in progress.network.items()}
    return {"images": progress.data, "processes": progress.processes, **network, **progress.settings}
