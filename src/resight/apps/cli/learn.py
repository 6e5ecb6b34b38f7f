"""`resight codebook`, `resight whiten` and `resight calibrate`: learn visual words, a whitening or a calibration."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, complete
from resight.errors import StorageError

if TYPE_CHECKING:
    from resight.encode.whitening import Facts


def codebook(
    paths: Annotated[list[Path], typer.Argument(help="Folders, image files or manifests.")],
    out: Annotated[Path, typer.Option(help="The file for the codebook (.npz).")],
    words: Annotated[int, typer.Option(min=2, help="Number of visual words.")] = 4096,
    encoder: Annotated[
        str, typer.Option(help="The encoder whose features to cluster.", autocompletion=complete("networks"))
    ] = "sift",
    features: Annotated[int, typer.Option(min=1, help="Maximum number of features to cluster.")] = 2_000_000,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Learn visual words from your own images.

    For the descriptors vlad and asmk.

    Use it with: resight index … --set branches.0.descriptor.codebook=FILE
    """
    _require_folder(out)
    from resight.collection.fit.fit_codebook import learn_codebook
    from resight.encode import codebook as codebooks

    with terminal.progress("describing") as bar:
        book = learn_codebook(paths, words, encoder, features, seed, bar)
    codebooks.save(book, out)
    if json:
        return terminal.print_json({"file": out, "words": len(book.centres), "fingerprint": book.fingerprint})
    terminal.echo(f"{out}: {len(book.centres):,} words, fingerprint {book.fingerprint}")
    return None


def whiten(
    collection: Annotated[Path, typer.Argument(help="The collection to learn from.")],
    out: Annotated[Path, typer.Option(help="The file for the whitening (.npz).")],
    kind: Annotated[
        Literal["pca", "lw"] | None,
        typer.Option(help="pca: from all images; lw: from pairs of the same object. Default: lw if there are pairs."),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="CSV with the columns a, b (ids); default: images with the same label.")
    ] = None,
    dimensions: Annotated[int | None, typer.Option(min=1, help="Dimensions to keep. Default: all.")] = None,
    branch: Annotated[int, typer.Option(min=0, help="The branch of the recipe whose vectors to whiten.")] = 0,
    power: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="0.5 whitens fully, 0 only rotates; default: 0.5 for lw, 0.25 for pca."),
    ] = None,
    shrinkage: Annotated[
        Literal["auto", "none"],
        typer.Option(help="auto: chosen from the data, for lw on held-out pairs; none: as published by Radenović."),
    ] = "auto",
    seed: int = 0,
    json: Json = False,
) -> None:
    """Learn a whitening from your own images.

    It makes vectors of the same object more similar.

    Use it with: resight index … --set 'branches.0.transforms=[{name="whiten", file="FILE"}]'
    """
    _require_folder(out)
    from resight.collection import open_collection
    from resight.collection.fit.fit_whitening import format_setting, learn_whitening
    from resight.encode import whitening as whitenings

    opened = open_collection(collection, must_exist=True)
    with terminal.progress("reading") as bar:
        learnt = learn_whitening(
            opened,
            kind,
            pairs,
            dimensions=dimensions,
            branch=branch,
            power=power,
            shrinkage=None if shrinkage == "auto" else 0.0,
            seed=seed,
            progress=bar,
        )
    whitenings.save(learnt, out)
    setting = format_setting(opened.recipe.branches[branch], branch, out)
    if json:
        return terminal.print_json(
            {"file": out, "fingerprint": learnt.fingerprint, "set": setting, **asdict(learnt.facts)}
        )
    terminal.echo(f"{out}: {_describe(learnt.facts)}\nuse it with: resight index … --set '{setting}'")
    return None


def calibrate(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="CSV with the columns query (a path or an id), id, same (1 or 0); or what `resight votes --out` "
            "wrote. Default: by label."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Fit probabilities on pairs that you know.

    The result replaces the shipped calibration.
    """
    from resight.collection import open_collection
    from resight.collection.fit.fit_calibration import fit_calibration

    opened = open_collection(collection, must_exist=True)
    with terminal.progress("searching") as bar:
        fitted = fit_calibration(opened, pairs, bar)
    opened.calibrate(fitted)
    if json:
        return terminal.print_json(fitted)
    weights = ", ".join(f"{name} {weight:.2f}" for name, weight in fitted.weights.items())
    terminal.echo(
        f"{collection}: fitted on {fitted.pairs:,} candidates, {fitted.same:,} of them the same object ({weights})"
    )
    return None


def _require_folder(out: Path) -> None:
    """Fails before the work instead of after it."""
    if not out.absolute().parent.is_dir():
        raise StorageError(f"there is no folder {out.parent}", expected="a folder that exists", fix="create it first")


def _describe(facts: "Facts") -> str:
    pairs = f" and {facts.pairs:,} pairs" if facts.pairs else ""
    intensity = "no shrinkage" if facts.shrinkage == 0 else f"shrinkage {facts.shrinkage or 0:.2f}"
    if facts.shrinkage is None:
        intensity = "left unwhitened, as held-out pairs rank best so"
    found = ""
    if facts.shrinkage == 0 and 0 < facts.pairs < facts.dimensions:
        found = "\nfewer pairs than dimensions: noise in the other directions is amplified; --shrinkage auto avoids it"
    if facts.found_before is not None and facts.found_after is not None:
        found += f"\nheld-out pairs, mean of 1/rank: {facts.found_before:.3f} before, {facts.found_after:.3f} after"
    return (
        f"{facts.kind} from {facts.images:,} images{pairs}, {facts.dimensions} dimensions with "
        f"{facts.variance:.1%} of the variance, {intensity}{found}"
    )
