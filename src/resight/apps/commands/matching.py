"""`resight match` and `resight analogues`."""

from pathlib import Path
from typing import Annotated

import typer

from resight.apps import terminal
from resight.apps.commands.adding import Json


def match(
    a: Annotated[Path, typer.Argument(help="The collection whose images are looked for.")],
    b: Annotated[Path, typer.Argument(help="The collection that they are looked for in.")],
    out: Annotated[Path, typer.Option(help="Where the matches go (.csv): a, b, probability, box in b, inliers.")],
    one_to_one: Annotated[
        bool, typer.Option("--one-to-one", help="Give each image of B to one of A at most, the best for all together.")
    ] = False,
    least: Annotated[float, typer.Option(min=0, max=1, help="The least probability of a match.")] = 0.5,
    candidates: Annotated[int, typer.Option(min=1, help="How many of B each of A may choose from.")] = 5,
    json: Json = False,
) -> None:
    """Find the same things in two collections: each image of A with its best match in B, and those that have none."""
    from resight.audit.matching import match_collections, write_matches
    from resight.collection import open_collection

    one, two = open_collection(a, must_exist=True), open_collection(b, must_exist=True)
    with terminal.progress("matching") as bar:
        found = match_collections(one, two, one_to_one=one_to_one, least=least, candidates=candidates, progress=bar)
    write_matches(found, out)
    alone = [one.a for one in found if not one.b]
    skipped = [one.skipped for one in found if one.skipped]
    if json:
        matched = {"matched": len(found) - len(alone), "unmatched": alone, "skipped": skipped}
        return terminal.print_json({"a": a, "b": b, **matched, "out": out})
    terminal.print_skipped(skipped)
    print(f"{out}: {len(found) - len(alone):,} of {len(found):,} images of {a} have a match in {b}")
    for name in alone[: terminal.SHOWN]:
        print(f"no match: {terminal.clean(name)}")
    if len(alone) > terminal.SHOWN:
        print(f"… and {len(alone) - terminal.SHOWN:,} more, which {out} lists without b")
    return None


def analogues(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    image: Annotated[Path, typer.Argument(help="The image that others are to be like.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many.")] = 10,
    diversity: Annotated[
        float, typer.Option(min=0, max=1, help="0: the nearest; towards 1: rather unlike each other.")
    ] = 0.3,
    json: Json = False,
) -> None:
    """Find things that are like this one and are not it: neighbours without those that show the very same thing."""
    from resight.audit.analogues import find_analogues
    from resight.collection import open_collection

    found = find_analogues(open_collection(collection, must_exist=True), image, k, diversity=diversity)
    if json:
        return terminal.print_json({"query": image, "analogues": found})
    if not found:
        print("nothing found: the collection is empty, or all that is near shows the very same thing")
        return None
    rows = [
        [
            str(rank),
            one.id,
            f"{one.similarity:.3f}",
            "–" if one.probability is None else f"{one.probability:.1%}",
        ]
        for rank, one in enumerate(found, start=1)
    ]
    terminal.print_table(
        f"like {image.name} in {collection}", ("", "image", "similarity", "same thing"), rows, (0, 2, 3)
    )
    return None
