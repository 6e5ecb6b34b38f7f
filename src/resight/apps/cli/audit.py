"""`resight audit`, `resight votes` and `resight review`: leaks between two image sets, and votes on the pairs found."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import CACHE_SIZE, Cache, CacheSize, Json, Preset, check_source, open_cache
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.audit.review.recalibration import Correction
    from resight.audit.review.review import Review


def audit(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="TRAIN EVAL",
            help="Collections, folders, manifests or data sets (gldv2:ROOT); with --published, one table.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the audit; with --published, the new table.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Matches to check per evaluation image.")] = 10,
    least: Annotated[
        float, typer.Option(min=0, max=1, help="Probability from which a pair without votes counts.")
    ] = 0.9,
    texts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="One text per line; classes whose name contains one are removed too."),
    ] = None,
    votes: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Votes from another tool (CSV: a, b, reviewer, verdict).")
    ] = None,
    every_class: Annotated[
        bool, typer.Option("--every-class", help="Remove every class with a confirmed match.")
    ] = False,
    class_attribute: Annotated[str, typer.Option("--class", help="The attribute that holds the class.")] = "label",
    name_attribute: Annotated[
        str, typer.Option("--name", help="The attribute of training images that names the class.", show_default=False)
    ] = "",
    preset: Preset = None,
    cache: Cache = None,
    cache_size: CacheSize = CACHE_SIZE,
    published: Annotated[
        str, typer.Option(metavar="NAME", help="Apply a published list instead: rgldv2.", show_default=False)
    ] = "",
    json: Json = False,
) -> None:
    """Check whether a training set contains evaluation objects.

    Lists what to remove. OUT is also a review: `resight review OUT` shows the pairs for voting. Run the audit
    again after the votes.
    """
    if published:
        return _apply_published(published, sources, out, json)
    if len(sources) != 2:
        raise InputError("an audit compares two sets", expected="TRAIN and EVAL", actual=f"{len(sources)} sources")
    import resight

    for source in sources:
        check_source(source)
    found = resight.audit(
        sources[0],
        sources[1],
        out,
        k=k,
        least=least,
        texts=texts or (),
        votes=votes or (),
        every_class=every_class,
        class_attribute=class_attribute,
        name_attribute=name_attribute,
        recipe=preset,
        cache=open_cache(cache, cache_size),
        progress=terminal.progress,
    )
    if json:
        return terminal.print_json({"folder": out, "skipped": found.skipped, **found.to_dict()})
    terminal.print_skipped(found.skipped)
    terminal.echo(found.describe())
    terminal.echo(f"wrote {out}; to look at the pairs: resight review {out}")
    return None


def votes(
    folder: Annotated[Path, typer.Argument(help="Folder of a review.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all votes as CSV.")] = None,
    correct: Annotated[
        bool, typer.Option("--correct", help="Correct the probabilities by the votes and write correction.json.")
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="After an audit: also correct the calibration of the searched collection."),
    ] = False,
    json: Json = False,
) -> None:
    """Show the votes on a review, and how well people agree."""
    from resight.audit.review import recalibration
    from resight.audit.review.review import Review
    from resight.files.atomic import write_atomic

    review = Review.open(folder)
    if out:
        with write_atomic(out) as temporary:
            temporary.write_text(review.export_csv(), encoding="utf-8")
    agreement = review.agreement()
    correction = recalibration.fit_correction(review.pairs, review.list_votes()) if correct or calibrate else None
    if correction and calibrate:
        _calibrate(review, correction)
    if correction:
        recalibration.save(correction, folder / recalibration.CORRECTION)
    if json:
        return terminal.print_json({"title": review.title, "agreement": agreement, "correction": correction})
    for name, count in agreement.reviewers.items():
        progress = review.progress(name)
        counts = ", ".join(f"{verdict} {number}" for verdict, number in sorted(progress.counts.items()))
        terminal.echo(f"{name}: {count:,} of {progress.total:,} pairs ({counts})")
    for two in agreement.two:
        kappa = _format_kappa(two.kappa)
        terminal.echo(f"{two.first}, {two.second}: agree on {two.agreed:,} of {two.pairs:,}, Cohen's kappa {kappa}")
    if len(agreement.reviewers) > 2:
        terminal.echo(f"all: {agreement.pairs:,} pairs, Fleiss' kappa {_format_kappa(agreement.fleiss)}")
    if not agreement.reviewers:
        terminal.echo("no votes yet")
    if correction:
        terminal.echo(
            f"log-odds × {correction.scale:.2f} {correction.shift:+.2f}, from {correction.pairs:,} pairs; "
            f"log loss on held-out pairs: {correction.before:.3f} before, {correction.after:.3f} after"
        )
    return None


def review(
    folder: Annotated[Path, typer.Argument(help="Folder of a review.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8080,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Show the pairs of a review on a page for voting.

    The same as `resight serve --review` for the searched collection.
    """
    from resight.apps.cli.serve import serve
    from resight.audit.review.review import Review

    # The service opens the other collection itself for its pictures; it cannot serve two collections of the same name.
    serve([Review.open(folder).b], port=port, review=[folder], open_page=open_page)


def _apply_published(name: str, sources: list[str], out: Path, json: bool) -> None:
    from resight.audit.leaks.rgldv2 import NAMES, apply_rgldv2

    if name not in NAMES or len(sources) != 1:
        raise InputError(
            "no such published list",
            expected=f"--published {' or '.join(NAMES)}, and one table",
            actual=f"{name}, {len(sources)} tables",
            fix="e.g. resight audit train_clean.csv --published rgldv2 --out clean.csv",
        )
    applied = apply_rgldv2(Path(sources[0]), out)
    if json:
        return terminal.print_json({"table": out, **terminal.plain(applied)})
    images = sum(applied.removed.values())
    terminal.echo(
        f"{out}: {len(applied.removed)} classes with {images:,} images removed, {applied.images:,} images left"
    )
    terminal.echo("exactly as published" if not applied.differences else "differs from the published figures:")
    for difference in applied.differences:
        terminal.echo(f"  {difference}")
    return None


def _calibrate(review: "Review", correction: "Correction") -> None:
    """Corrects the calibration that found the pairs, so that running it again changes nothing more."""
    from resight.audit.review.recalibration import correct_calibration, require_both_verdicts
    from resight.audit.review.review import CALIBRATION
    from resight.collection import open_collection

    found_with = review.calibration
    if found_with is None:
        raise InputError(
            f"{review.folder} has no calibration to correct",
            expected="a review that `resight audit` made, of a collection whose searches give probabilities",
            actual=f"{review.title!r} without {CALIBRATION}",
            fix="run `resight audit` again; for a review of `resight dedup`, use --correct and run dedup again",
        )
    require_both_verdicts(correction)
    open_collection(review.b, must_exist=True).calibrate(correct_calibration(found_with, correction))


def _format_kappa(kappa: float | None) -> str:
    return "not defined" if kappa is None else f"{kappa:.2f}"
