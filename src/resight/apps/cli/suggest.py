"""`resight suggest`: which preset suits your images, tried on a sample of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, complete

if TYPE_CHECKING:
    import numpy as np

    from resight.evaluate.suggest import Sample

PRESETS = ("sift_tokens", "products", "sift", "tokens", "regions")
MANIFESTS = (".csv", ".json", ".jsonl", ".ndjson")


def suggest(
    path: Annotated[Path, typer.Argument(help="A folder of images, or a manifest (also with your own ground truth).")],
    preset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A preset or recipe file to try; give several times.",
            autocompletion=complete("presets"),
        ),
    ] = None,
    images: Annotated[int, typer.Option(min=8, help="Images in the sample.")] = 200,
    queries: Annotated[int, typer.Option(min=8, help="Searches per preset.")] = 60,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.")] = 0,
    json: Json = False,
) -> None:
    """Try presets on a sample of your images, and suggest one.

    The queries are those of a manifest with ground truth; otherwise resight makes new views of your images. Writes
    nothing.
    """
    import numpy as np

    from resight import recipe as recipes
    from resight.evaluate.suggest import suggest as try_presets

    chosen = [recipes.load(name) for name in preset or PRESETS]
    sample = read_sample(path, images, queries, np.random.default_rng(seed))
    with terminal.progress("trying presets") as bar:
        found = try_presets(sample, chosen, bar)
    if json:
        return terminal.print_json(found)
    kind = "synthetic views of them" if found.synthetic else "queries of your ground truth"
    rows = [
        [
            trial.preset,
            f"{trial.recall:.3f} [{trial.interval[0]:.3f}, {trial.interval[1]:.3f}]",
            f"{trial.milliseconds:.0f} ms",
            terminal.format_bytes(trial.bytes_per_image),
            "yes" if trial.as_good_as_the_best else "no",
        ]
        for trial in found.trials
    ]
    title = f"{found.images} images, {found.queries} {kind}"
    terminal.print_table(
        title, ("preset", "R@1", "per search", "per image", "as good as the best"), rows, right=(1, 2, 3)
    )
    terminal.echo(f"Suggested: {found.preset}, the quickest of those that are as good as the best.")
    terminal.echo(f"  resight index {path} --into photos.resight --encoder {found.preset}")
    if found.synthetic:
        terminal.echo("Synthetic views say little about other sides of a solid object: try real pairs in a manifest.")
    return None


def read_sample(path: Path, images: int, queries: int, generator: "np.random.Generator") -> "Sample":
    from resight.data import sets
    from resight.data.folder_walk import walk
    from resight.evaluate.suggest import sample_truth, sample_views
    from resight.types import ImageRef

    if path.suffix.lower() not in MANIFESTS:
        return sample_views([ref for ref in walk(path) if isinstance(ref, ImageRef)], images, queries, generator)
    dataset = sets.build("manifest").load(path)
    if any(judgement.grades for judgement in dataset.judgements.values()):
        return sample_truth(dataset, images, queries, generator)
    return sample_views(dataset.database, images, queries, generator)
