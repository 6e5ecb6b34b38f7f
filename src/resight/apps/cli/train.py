"""`resight train`: a network by a recipe, or a light head for your own folder of photos."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.cli.options import CACHE_SIZE, Cache, CacheSize, Json, Set, open_cache
from resight.errors import InputError
from resight.files.documents import load_json
from resight.files.inside import resolve_inside
from resight.files.remote import is_remote

if TYPE_CHECKING:
    from resight.train.distributed import Team
    from resight.train.train_head import Report
    from resight.types import Recipe

ENCODER, MINUTES = "tokens", 15.0  # defaults with --folder


def train(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe with [train]: a path, or one such as cider/sfm120k.")
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
    encoder: Annotated[
        str | None, typer.Option(help="With --folder: the preset that gets a head.", show_default=ENCODER)
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
    if (recipe is None) == (folder is None):
        raise _refuse_unclear(f"recipe {recipe}, folder {folder}")
    if folder is not None:
        _refuse_options(
            "--folder", {"--data": data, "--resume": resume, "--audit": audit, "--processes": processes}, "a recipe"
        )
        target = out or name_out(folder)
        chosen, time = encoder or ENCODER, minutes or MINUTES
        return _train_head(folder, pairs, target, chosen, time, settings or [], cache, cache_size, json)
    _refuse_options(
        "a recipe", {"--pairs": pairs, "--encoder": encoder, "--minutes": minutes, "--cache": cache}, "--folder"
    )
    if data is None or out is None:
        raise _refuse_unclear(f"recipe {recipe}, data {data}, out {out}")
    from resight.recipe import label, load_all

    overrides = [*(settings or []), *([f"train.audit={str(audit)!r}"] if audit else [])]
    recipes = load_all(str(recipe), overrides)
    reports = {}
    for one in recipes:
        name = re.sub(r"[^\w.=-]+", "_", label(one))
        target = out if len(recipes) == 1 else resolve_inside(out, name, what="a recipe")
        report = _train_network(one, data, target, resume, processes or 1)
        if report is None:
            continue
        reports[label(one)] = report
        if not json:
            _print_trained(one.name, report)
    if json and reports:
        terminal.print_json(next(iter(reports.values())) if len(recipes) == 1 else reports)
    return None


def name_out(folder: Path) -> Path:
    """The default folder of a head: beside the photos, or in the current folder if the photos are remote."""
    if is_remote(folder):
        return Path(f"{folder.name}.trained")
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return named.with_name(f"{named.name}.trained")


def _refuse_unclear(given: str) -> InputError:
    return InputError(
        "it is not clear what to train",
        expected="RECIPE --data ROOT --out FOLDER, or --folder PHOTOS",
        actual=given,
        fix="e.g. resight train cider/sfm120k --data ROOT --out trained/",
    )


def _refuse_options(mode: str, options: dict[str, object], other: str) -> None:
    """Refuses options of the other mode, which would have no effect."""
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(
            f"{' and '.join(given)} cannot be given with {mode}",
            expected=f"options of {mode}",
            actual=f"{', '.join(given)}, which belong to {other}",
            fix="leave them out" if len(given) > 1 else "leave it out",
        )


def _train_network(recipe: "Recipe", data: Path, out: Path, resume: bool, processes: int) -> dict[str, Any] | None:
    """The training report as JSON; None in the helping processes of torchrun."""

    from resight.train.distributed import join, launch
    from resight.train.train_config import REPORT

    if processes > 1:
        launch(processes, share_work, (recipe, data, out, resume))
    else:
        with join() as team:
            share_work(team, recipe, data, out, resume)
            if not team.leads:
                return None
    report: dict[str, Any] = load_json((out / REPORT).read_text(encoding="utf-8"))
    return report


def share_work(team: "Team", recipe: "Recipe", data: Path, out: Path, resume: bool) -> None:
    """The work of one process; the leading process shows the progress."""
    from resight.evaluate import judge
    from resight.train.loop import StepReport
    from resight.train.train_network import train_recipe

    if not team.leads:
        train_recipe(recipe, data, out, judge, resume=resume, team=team)
        return
    with terminal.progress("reading sizes") as bar:

        def show(stage: str, report: StepReport) -> None:
            found = f", validation {report.validation:.3f}" if report.validation is not None else ""
            bar.rename(f"{stage}: epoch {report.epoch + 1}, loss {report.loss:.3f}, rate {report.rate:.2g}{found}")
            bar(report.step, report.steps)

        train_recipe(recipe, data, out, judge, resume=resume, team=team, on_step=show, listing=bar)


def _print_trained(name: str, report: dict[str, Any]) -> None:
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


def _train_head(
    folder: Path,
    pairs: Path | None,
    out: Path,
    encoder: str,
    minutes: float,
    overrides: list[str],
    cache: Path | None,
    cache_size: float,
    json: bool,
) -> None:
    from resight.evaluate import judge
    from resight.evaluate.statistics.tests import paired_interval, randomisation_test
    from resight.recipe import load
    from resight.train.fit_head import Settings
    from resight.train.train_head import train_head

    features = open_cache(cache, cache_size)
    with terminal.progress("encoding") as bar:
        report = train_head(
            folder,
            out,
            load(encoder, overrides),
            judge=judge,
            interval=paired_interval,
            chance=randomisation_test,
            pairs=pairs,
            settings=Settings(minutes=minutes),
            cache=features,
            progress=bar,
            on_check=lambda head, check: bar.rename(
                f"{head.name}: step {check.step}, loss {check.loss:.3f}, AP {check.score:.3f}"
            ),
        )
    if json:
        return terminal.print_json(report)
    terminal.print_skipped(report.skipped)
    _print_head(report)
    return None


def _print_head(report: "Report") -> None:
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
    terminal.echo(f"use it with: resight index … --recipe {report.recipe}")
