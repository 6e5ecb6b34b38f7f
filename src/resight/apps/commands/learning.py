"""`resight codebook` and `resight calibrate`: what can be learnt from one's own images."""

from pathlib import Path
from typing import Annotated

import typer

from resight.apps import terminal
from resight.apps.commands.adding import Json
from resight.errors import StorageError


def codebook(
    paths: Annotated[list[Path], typer.Argument(help="Folders, image files or manifests.")],
    out: Annotated[Path, typer.Option(help="Where the code book goes (.npz).")],
    words: Annotated[int, typer.Option(min=2, help="How many visual words.")] = 4096,
    encoder: Annotated[str, typer.Option(help="The encoder whose features are clustered.")] = "sift",
    features: Annotated[int, typer.Option(min=1, help="At most so many features take part.")] = 2_000_000,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Learn visual words from your own images, for the descriptors vlad and asmk.

    Use it with: resight index … --set branches.0.descriptor.codebook=FILE
    """
    if not out.absolute().parent.is_dir():  # before the work, not after it
        raise StorageError(f"there is no folder {out.parent}", expected="a folder that exists", fix="make it first")
    from resight.collection.codebooks import learn_codebook
    from resight.encode import codebook as codebooks

    with terminal.progress("describing") as report_progress:
        book = learn_codebook(paths, words, encoder, features, seed, report_progress)
    codebooks.save(book, out)
    if json:
        return terminal.print_json({"file": out, "words": len(book.centres), "fingerprint": book.fingerprint})
    print(f"{out}: {len(book.centres):,} words, fingerprint {book.fingerprint}")
    return None


def calibrate(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    pairs: Annotated[
        Path | None,
        typer.Option(help="CSV with the columns query (a path), id, same (1 or 0); without it, labels decide."),
    ] = None,
    json: Json = False,
) -> None:
    """Fit the probability on pairs that you know, in place of the shipped calibration."""
    from resight.collection import open_collection
    from resight.collection.known_pairs import fit_calibration

    opened = open_collection(collection, must_exist=True)
    with terminal.progress("searching") as report_progress:
        fitted = fit_calibration(opened, pairs, report_progress)
    opened.calibrate(fitted)
    if json:
        return terminal.print_json(fitted)
    weights = ", ".join(f"{name} {weight:.2f}" for name, weight in fitted.weights.items())
    print(f"{collection}: fitted on {fitted.pairs:,} candidates, {fitted.same:,} of them the same thing ({weights})")
    return None
