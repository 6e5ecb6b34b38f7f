"""What every data set promises: of a folder that is not it, of a sample that the tests write, and of the real one."""

import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest
from support import samples

from resight import plugins
from resight.data import sets
from resight.data.check import check_source, count
from resight.errors import InputError
from resight.types import Dataset

FEW = {  # settings of sets that make their images, so that they make few
    "moon": {"craters": 5},
    "moonbench": {"craters": 6, "queries": 2, "query_azimuths": (0.0,)},
}

SAMPLES = {
    module.name: importlib.import_module(f"support.samples.{module.name}")
    for module in pkgutil.iter_modules(samples.__path__)
}
CASES = [(name, settings) for name, module in SAMPLES.items() for settings in getattr(module, "CASES", ({},))]


@pytest.fixture(params=plugins.names("resight.data.sets"), scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):
    """What a set makes goes to a cache directory of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def dataset(name: str, real_data: Path) -> Dataset:
    try:
        return sets.build(name, **FEW.get(name, {})).load(real_data)
    except InputError as error:
        pytest.skip(error.problem)


def test_its_docstring_begins_with_a_line_for_the_list_of_data_sets(name: str):
    line = (plugins.find("resight.data.sets", name).__doc__ or "").partition("\n")[0]
    assert 20 < len(line) <= 120
    assert line.endswith((".", ":", ";", ","))


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_that_is_empty_or_missing_is_refused_and_nothing_is_written(name: str, made: bool, tmp_path: Path):
    root = tmp_path / "nothing"
    if made:
        root.mkdir()
    with pytest.raises(InputError) as caught:
        sets.build(name).load(root)
    assert str(root) in str(caught.value)
    assert caught.value.expected and caught.value.fix
    assert [path.name for path in tmp_path.rglob("*")] == ["nothing"] * made


def test_ids_are_unique_and_files_exist(dataset: Dataset):
    for refs in (dataset.database, dataset.queries):
        assert len({ref.id for ref in refs}) == len(refs)
        assert all(ref.path.is_file() for ref in refs)
    assert dataset.database


def test_every_query_is_judged_and_its_truth_is_in_the_database(dataset: Dataset):
    known = {ref.id for ref in dataset.database}
    assert set(dataset.judgements) == {ref.id for ref in dataset.queries}
    for judgement in dataset.judgements.values():
        assert known >= {*judgement.grades, *judgement.ignored, *judgement.boxes}


def test_a_second_load_gives_the_same(name: str, dataset: Dataset, real_data: Path):
    assert sets.build(name, **FEW.get(name, {})).load(real_data) == dataset


@pytest.fixture(scope="module")
def sample_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in SAMPLES}
    for name, module in SAMPLES.items():
        module.write(folders[name], np.random.default_rng(0))
    return folders


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_a_sample_in_its_format_is_read_whole(name: str, settings: dict[str, object], sample_folders: dict[str, Path]):
    source = sets.build(name, **settings)
    loaded = source.load(sample_folders[name])
    assert source.load(sample_folders[name]) == loaded
    test_ids_are_unique_and_files_exist(loaded)
    test_every_query_is_judged_and_its_truth_is_in_the_database(loaded)
    found = check_source(source, sample_folders[name])
    assert (found.missing, found.unreadable, found.skipped) == ((), (), ())


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_what_was_published_of_it_can_be_counted_and_fetched(
    name: str, settings: dict[str, object], sample_folders: dict[str, Path]
):
    source = sets.build(name, **settings)
    published = getattr(source, "published", None)
    if published is None:
        pytest.skip("nothing was published of it")
    assert published.counts.keys() <= count(source.load(sample_folders[name])).keys()
    assert published.downloads and published.licence
    assert all(sum.partition(":")[0] in ("md5", "sha256") for sum in published.checksums.values())
