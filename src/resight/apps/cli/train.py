"""`resight train`: a network by a recipe, or a light head for your own folder of photos."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.cli.options import CACHE_SIZE, Cache, CacheSize, Json, Set, complete, open_cache
from resight.errors import InputError
from resight.files.inside import resolve_inside

if TYPE_CHECKING:
    from resight.tasks.train import Training

ENCODER, MINUTES = "tokens", 15.0  # defaults with --folder


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A recipe with [train]: a path, or one such as cider/sfm120k.", autocompletion=complete("recipes")
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="ROOT", help="Folder of the recipe's training data.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for the result. Default with --folder: PHOTOS.trained."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="PHOTOS", help="Instead of a recipe: your own photos, one folder per object.")
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --folder: pairs of the same object (CSV: a, b), or votes.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            "--encoder",
            metavar="NAME",
            help="With --folder: the preset that gets a head.",
            show_default=ENCODER,
            autocompletion=complete("presets"),
        ),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="With --folder: how long to train.", show_default=f"{MINUTES:g}")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="With a recipe: continue from the last checkpoint in FOLDER.")
    ] = False,
    audit: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="With a recipe: refuse classes that this `resight audit` found to overlap."
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="With a recipe: processes that share every batch.", show_default="1"),
    ] = None,
    settings: Set = None,
    cache: Cache = None,
    cache_size: CacheSize = CACHE_SIZE,
    json: Json = False,
) -> None:
    """Train a network, or a light head for your own photos.

    A recipe defines the network; --folder trains a head that improves an encoder on your own objects.
    """
    import resight
    from resight.recipe import label, load, load_all
    from resight.tasks.train import refuse_options

    if (recipe is None) == (folder is None):
        raise _refuse_unclear(f"recipe {recipe}, folder {folder}")
    if folder is not None:
        refuse_options(
            "--folder", {"--data": data, "--resume": resume, "--audit": audit, "--processes": processes}, "a recipe"
        )
        trained = resight.train(
            load(preset or ENCODER, settings or ()),
            folder=folder,
            pairs=pairs,
            out=out,
            minutes=minutes or MINUTES,
            cache=open_cache(cache, cache_size),
            progress=terminal.progress,
        )
        return terminal.print_json(trained.head) if json else _print_head(trained)
    refuse_options(
        "a recipe", {"--pairs": pairs, "--preset": preset, "--minutes": minutes, "--cache": cache}, "--folder"
    )
    if data is None or out is None:
        raise _refuse_unclear(f"recipe {recipe}, data {data}, out {out}")
    recipes = load_all(str(recipe), settings or ())
    reports = {}
    for one in recipes:
        name = re.sub(r"[^\w.=-]+", "_", label(one))
        target = out if len(recipes) == 1 else resolve_inside(out, name, what="a recipe")
        report = resight.train(
            one, data, target, resume=resume, audit=audit, processes=processes or 1, progress=terminal.progress
        ).report
        if not report:
            continue  # a helping process of torchrun
        reports[label(one)] = report
        if not json:
            _print_trained(one.name, report)
    if json and reports:
        terminal.print_json(next(iter(reports.values())) if len(recipes) == 1 else reports)
    return None


def _refuse_unclear(given: str) -> InputError:
    return InputError(
        "it is not clear what to train",
        expected="RECIPE --data ROOT --out FOLDER, or --folder PHOTOS",
        actual=given,
        fix="e.g. resight train cider/sfm120k --data ROOT --out trained/",
    )


def _print_trained(name: str, report: Mapping[str, Any]) -> None:
    terminal.echo(
        f"{name}: {report['images']:,} images of {report['classes']:,} classes; validated on "
        f"{report['held_out_images']:,} of {report['held_out_classes']:,} others"
    )
    for note in report["notes"]:
        terminal.echo(f"  {note}")
    for stage, one in report["stages"].items():
        best = "" if one["best"] is None else f", best validation {one['best']:.3f} in epoch {one['best_epoch'] + 1}"
        early = ", stopped early" if one["stopped_early"] else ""
        terminal.echo(f"  {stage}: {one['epochs']} epochs, {terminal.format_seconds(one['seconds'])}{best}{early}")
        for id in one["unreadable"]:
            terminal.echo(f"  unreadable, replaced by another image: {terminal.clean(id)}")
        for id in one["unreadable_held_out"]:
            terminal.echo(f"  unreadable, left out of validation: {terminal.clean(id)}")
        if one["skipped"]:
            terminal.echo(f"  {one['skipped']:,} of {one['steps']:,} steps skipped: their gradients overflowed fp16")
        for change in one["changes"]:
            terminal.echo(f"  changed on resume: {change}")
    terminal.echo(f"use it with: resight index … --recipe {report['recipe']}")


def _print_head(trained: "Training") -> None:
    report = trained.head
    assert report is not None
    terminal.print_skipped(report.skipped)
    train, choose, measure = report.things
    terminal.echo(
        f"{train:,} objects to train on, {choose:,} to validate, {measure:,} to test; {report.images:,} images"
    )
    if report.single:
        terminal.echo(f"{report.single:,} objects with a single image left out")
    if report.loose:
        terminal.echo(f"{report.loose:,} images outside any object's folder left out")
    for a, b in report.contradictions:
        terminal.echo(f"marked different, but linked by other pairs: {terminal.clean(a)} and {terminal.clean(b)}")
    terminal.echo(report.verdict)
    if report.kept:
        terminal.echo(f"use it with: resight index … --recipe {report.recipe}")
