"""`resight train`: a network by a recipe, or a light head for one's own folder of photos."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.cli.index import GIGABYTE, USUAL_CACHE, Cache, CacheSize, Json, Set
from resight.errors import InputError
from resight.files.remote import is_remote

if TYPE_CHECKING:
    from resight.train import train_head
    from resight.train.distributed import Team
    from resight.types import Recipe

ENCODER, MINUTES = "tokens", 15.0  # of --folder


def train(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe with [train]: a path, or one such as cider/sfm120k.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="ROOT", help="Where the recipe's training data are.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the result goes. With --folder, by default PHOTOS.trained."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="PHOTOS", help="Instead of a recipe: photos of your own, one folder a thing.")
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --folder: pairs of the same thing (CSV: a, b), or votes.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="With --folder: the preset that gets a head.", show_default=ENCODER)
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="With --folder: how long to train.", show_default=f"{MINUTES:g}")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="With a recipe: go on from the last checkpoint in FOLDER.")
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
    cache_size: CacheSize = USUAL_CACHE,
    json: Json = False,
) -> None:
    """Train a network by a recipe, or with --folder a light head that makes an encoder better on your own things."""
    if (recipe is None) == (folder is None):
        raise _refuse_unclear(f"recipe {recipe}, folder {folder}")
    if folder is not None:
        _refuse_options(
            "--folder", {"--data": data, "--resume": resume, "--audit": audit, "--processes": processes}, "a recipe"
        )
        place = out or name_out(folder)
        chosen, time = encoder or ENCODER, minutes or MINUTES
        return _train_head(folder, pairs, place, chosen, time, settings or [], cache, cache_size, json)
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
        place = out if len(recipes) == 1 else out / re.sub(r"[^\w.=-]+", "_", label(one))
        report = _train_network(one, data, place, resume, processes or 1)
        if report is None:
            continue
        reports[label(one)] = report
        if not json:
            _print_trained(one.name, report)
    if json and reports:
        terminal.print_json(next(iter(reports.values())) if len(recipes) == 1 else reports)
    return None


def name_out(folder: Path) -> Path:
    """Beside the photos, where the head goes if nobody says; of photos that lie elsewhere, in the current folder."""
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
    """Refuses options of the other way to train, which would do nothing here."""
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(
            f"{' and '.join(given)} cannot be given with {mode}",
            expected=f"options of {mode}",
            actual=f"{', '.join(given)}, which belong to {other}",
            fix="leave them out" if len(given) > 1 else "leave it out",
        )


def _train_network(recipe: "Recipe", data: Path, out: Path, resume: bool, processes: int) -> dict[str, Any] | None:
    """The report, as its file has it; None in a process of torchrun that only helps."""
    import json

    from resight.train.distributed import join, launch
    from resight.train.train_network import REPORT

    if processes > 1:
        launch(processes, share_work, (recipe, data, out, resume))
    else:
        with join() as team:
            share_work(team, recipe, data, out, resume)
            if not team.leads:
                return None
    report: dict[str, Any] = json.loads((out / REPORT).read_text(encoding="utf-8"))
    return report


def share_work(team: "Team", recipe: "Recipe", data: Path, out: Path, resume: bool) -> None:
    """What one process does; the first of them shows how far it is."""
    from resight.evaluate import judge
    from resight.train.loop import Told
    from resight.train.train_network import train_recipe

    if not team.leads:
        train_recipe(recipe, data, out, judge, resume=resume, team=team)
        return
    with terminal.progress("reading sizes") as bar:

        def show(stage: str, told: Told) -> None:
            found = f", validation {told.validation:.3f}" if told.validation is not None else ""
            bar.rename(f"{stage}: epoch {told.epoch + 1}, loss {told.loss:.3f}, rate {told.rate:.2g}{found}")
            bar(told.step, told.steps)

        train_recipe(recipe, data, out, judge, resume=resume, team=team, tell=show, listing=bar)


def _print_trained(name: str, report: dict[str, Any]) -> None:
    print(
        f"{name}: {report['images']:,} images of {report['classes']:,} classes; validated on "
        f"{report['held_out_images']:,} of {report['held_out_classes']:,} others"
    )
    for note in report["notes"]:
        print(f"  {note}")
    for stage, one in report["stages"].items():
        best = "" if one["best"] is None else f", best validation {one['best']:.3f} in epoch {one['best_epoch'] + 1}"
        early = ", stopped early" if one["stopped_early"] else ""
        print(f"  {stage}: {one['epochs']} epochs, {terminal.format_seconds(one['seconds'])}{best}{early}")
        for id in one["unreadable"]:
            print(f"  could not be read and was replaced: {terminal.clean(id)}")
        for id in one["unreadable_held_out"]:
            print(f"  could not be read and was not validated on: {terminal.clean(id)}")
        if one["skipped"]:
            print(f"  {one['skipped']:,} of {one['steps']:,} steps left out: their gradients did not fit into fp16")
        for change in one["changes"]:
            print(f"  changed when it was resumed: {change}")
    print(f"use it with: resight index … --recipe {report['recipe']}")


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
    from resight.encode.feature_cache import FeatureCache
    from resight.evaluate import judge
    from resight.evaluate.statistics.tests import paired_interval, randomisation_test
    from resight.recipe import load
    from resight.train.fit_head import Settings
    from resight.train.train_head import train_folder

    features = FeatureCache(cache, int(cache_size * GIGABYTE)) if cache else None
    with terminal.progress("encoding") as bar:
        report = train_folder(
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
            tell=lambda head, check: bar.rename(
                f"{head.name}: step {check.step}, loss {check.loss:.3f}, AP {check.score:.3f}"
            ),
        )
    if json:
        return terminal.print_json(report)
    terminal.print_skipped(report.skipped)
    _print_head(report)
    return None


def _print_head(report: "train_head.Report") -> None:
    train, choose, measure = report.things
    print(f"{train:,} things to train on, {choose:,} to choose by, {measure:,} to measure on; {report.images:,} images")
    if report.single:
        print(f"{report.single:,} things with one image left out")
    if report.loose:
        print(f"{report.loose:,} images that lie in no folder of their own left out")
    for a, b in report.contradictions:
        print(f"called different, but joined by other pairs: {terminal.clean(a)} and {terminal.clean(b)}")
    print(report.verdict)
    print(f"use it with: resight index … --recipe {report.recipe}")
