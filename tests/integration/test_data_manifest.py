"""`resight data manifest`: every data set of the samples, written and read back."""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import samples
from support.running import run

from resight.data import sets
from resight.types import Dataset, ImageRef

MODULES = {
    module.name: importlib.import_module(f"support.samples.{module.name}")
    for module in pkgutil.iter_modules(samples.__path__)
}
CASES = [(name, settings) for name, module in MODULES.items() for settings in getattr(module, "CASES", ({},))]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        made = {name: tmp_path_factory.mktemp(name) for name in MODULES}
        for name, module in MODULES.items():
            module.write(made[name], np.random.default_rng(0))
        yield made


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
@pytest.mark.parametrize("inside", [True, False], ids=["relative", "absolute"])
def test_a_data_set_comes_back_from_its_manifest(
    name: str, settings: dict[str, Any], inside: bool, folders: dict[str, Path], tmp_path: Path
) -> None:
    out = (folders[name] if inside else tmp_path) / "manifest.jsonl"
    words = [f"--set={key}={value!r}".replace("True", "true") for key, value in settings.items()]
    answer = run("data", "manifest", name, folders[name], "--out", out, *words, "--json").answer
    given, found = sets.build(name, **settings).load(folders[name]), sets.build("manifest").load(out)
    assert list_images(found.database) == list_images(given.database)
    order = sorted if answer["reordered"] else list
    assert order(list_images(found.queries)) == order(list_images(given.queries))
    assert found.judgements == given.judgements
    assert (answer["database"], answer["queries"]) == (len(given.database), len(given.queries))
    out.unlink()


def list_images(refs: tuple[ImageRef, ...]) -> list[tuple[Any, ...]]:
    return [(ref.id, ref.path.resolve(), ref.box, dict(ref.attributes)) for ref in refs]


def count_boxes(dataset: Dataset) -> int:
    return sum(len(judgement.boxes) for judgement in dataset.judgements.values())


def test_the_samples_test_every_part_of_a_manifest(folders: dict[str, Path]) -> None:
    """Otherwise the test above would pass with parts that no sample has."""
    loaded = [sets.build(name, **settings).load(folders[name]) for name, settings in CASES]
    judgements = [judgement for dataset in loaded for judgement in dataset.judgements.values()]
    assert any(2 in judgement.grades.values() for judgement in judgements)
    assert any(judgement.ignored for judgement in judgements)
    assert any(map(count_boxes, loaded))
    assert any(ref.box for dataset in loaded for ref in dataset.queries)
    assert any({ref.id for ref in dataset.queries} & {ref.id for ref in dataset.database} for dataset in loaded)


def test_a_manifest_in_csv_and_its_words(folders: dict[str, Path], tmp_path: Path) -> None:
    ran = run("data", "manifest", "sfm120k", folders["sfm120k"], "--set", "split=val", "--out", tmp_path / "m.csv")
    assert ran.out == f"wrote {tmp_path / 'm.csv'}: 6 database images, 2 queries, 2 images are both\n"
    checked = run("data", "check", "manifest", tmp_path / "m.csv")
    assert checked.code == 0 and "queries 2, with truth 2" in checked.out


def test_graded_truth_is_refused_in_csv_with_the_way_out(folders: dict[str, Path], tmp_path: Path) -> None:
    ran = run("data", "manifest", "revisited", folders["revisited"], "--out", tmp_path / "m.csv")
    assert ran.code == 2
    assert "graded positives" in ran.err and "--out manifest.jsonl" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_can_be_indexed(folders: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "m.csv"
    assert run("data", "manifest", "gldv2", folders["gldv2"], "--out", out).code == 0
    assert "4 added" in run("index", out, "--into", tmp_path / "c.resight", "--encoder", "sift").out


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("museum", {}),
        ("museum", {"direction": "painting_to_photos"}),
        ("gardens_point", {"tolerance": 1}),
        ("halensee", {"heading": 40.0}),
    ],
    ids=str,
)
def test_the_real_sets_come_back_from_their_manifests(
    name: str, settings: dict[str, Any], real_data: Path, tmp_path: Path
) -> None:
    words = [f"--set={key}={value}" for key, value in settings.items()]
    assert run("data", "manifest", name, real_data, "--out", tmp_path / "m.jsonl", *words).code == 0
    given, found = sets.build(name, **settings).load(real_data), sets.build("manifest").load(tmp_path / "m.jsonl")
    assert list_images(found.database) == list_images(given.database)
    assert list_images(found.queries) == list_images(given.queries)
    assert found.judgements == given.judgements
