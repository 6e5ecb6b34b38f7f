"""`resight lookalikes`: similar but different objects."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, Where, refuse_swapped

if TYPE_CHECKING:
    from resight.audit.likeness.find_lookalikes import Lookalike, Lookalikes


class By(StrEnum):
    auto = "auto"
    form = "form"
    vectors = "vectors"


def lookalikes(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    image: Annotated[Path, typer.Argument(help="The image to compare with: a file, or an id of the collection.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Number of answers.")] = 10,
    by: Annotated[
        By, typer.Option(help="form: the form of craters; vectors: stored vectors; auto: form for crops of craters.")
    ] = By.auto,
    where: Where = None,
    diversity: Annotated[
        float, typer.Option(min=0, max=1, help="0: the most similar; towards 1: more different from each other.")
    ] = 0.3,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a contact sheet of the answers.")] = None,
    json: Json = False,
) -> None:
    """Find similar but different objects.

    Lists the nearest images that do not show the very same object. Craters are compared by form, whatever
    their tint and orientation, without those on the same ground.
    """
    import resight

    refuse_swapped(collection, [str(image)])
    result = resight.lookalikes(
        collection,
        image,
        k,
        by=by.value,
        where=where or (),
        diversity=diversity,
        html=html,
        progress=terminal.progress,
    )
    if json:
        return terminal.print_json(
            {
                "query": image,
                "by": result.by,
                "crater": result.crater,
                "compared": result.compared,
                "left_out": result.left_out,
                "analogues": result.found,
                "skipped": result.skipped,
            }
        )
    terminal.print_skipped(result.skipped)
    print_lookalikes(f"similar to {image.name} in {collection}", result)
    if html:
        terminal.echo(f"wrote {html}")
    return None


def print_lookalikes(title: str, result: "Lookalikes") -> None:
    if result.by == "form":
        side = f"; its crop is taken to be {result.view:g} diameters wide" if result.assumed else ""
        without = f"without {result.left_out:,} of the same ground"
        terminal.echo(f"compared by form: {result.compared:,} crops of craters, {without}{side}")
    else:
        terminal.echo("compared by the vectors that the collection stores")
    if not result.found:
        terminal.echo("nothing found: no image is left, or every near image shows the very same object")
        return
    rows = [[str(rank), one.id, f"{one.similarity:.3f}", *_describe(one)] for rank, one in enumerate(result.found, 1)]
    facts = ("diameter km", "lat", "lon") if result.by == "form" else ("same object",)
    terminal.print_table(title, ("", "image", "similarity", *facts), rows, (0, 2, 3, 4, 5)[: 3 + len(facts) - 1])


def _describe(one: "Lookalike") -> list[str]:
    if one.crater:
        return [f"{one.crater.diameter_km:.1f}", f"{one.crater.lat:.2f}", f"{one.crater.lon:.2f}"]
    return ["–" if one.probability is None else f"{one.probability:.1%}"]
