"""The catalogue of downloads: its own entries, how parts are chosen, and wrong catalogues."""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest

from resight import plugins
from resight.data import sets
from resight.data.download_catalogue import Entry, Part, RemoteFile, choose_files, find_entry
from resight.data.sets.revisited import Config, RevisitedSource
from resight.errors import InputError, RecipeError

NAMES = plugins.names("resight.data.sets")
SHIPPED = tomllib.loads(resources.files("resight.data").joinpath("downloads.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_every_data_set_can_be_downloaded_or_says_what_to_do(name: str) -> None:
    entry = find_entry(name)
    assert entry.title and entry.source and entry.licence
    assert entry.parts or (entry.manual and entry.reason)
    for part in entry.parts:
        assert part.about and (part.files or (part.manual and part.reason and part.optional))
    assert choose_files(name, entry, ()) or entry.manual


def test_the_catalogue_has_no_entry_without_a_reader() -> None:
    assert SHIPPED.keys() <= set(NAMES)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_addresses_are_plain_and_targets_lie_below_the_folder(name: str) -> None:
    urls = []
    for part in find_entry(name).parts:
        for file in (one for files in part.files for one in files.expand(None)):
            address = urlsplit(file.url)
            assert address.scheme in ("http", "https") and address.netloc and not (address.query or address.username)
            assert "{" not in file.url + file.checksums and file.name
            assert not file.unpack or file.name.endswith((".tar", ".tar.gz", ".tgz", ".zip"))
            urls.append((file.url, file.to))
    assert len(set(urls)) == len(urls)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_the_settings_of_the_check_exist(name: str) -> None:
    for setting in find_entry(name).check:
        key, _, value = setting.partition("=")
        sets.build(name, **({key: value} if key else {}))


def test_checksums_agree_with_those_that_the_readers_know() -> None:
    sums = {file.name: file.checksum for part in find_entry("revisited").parts for file in part.files if file.checksum}
    choices: tuple[Literal["roxford5k", "rparis6k"], ...] = ("roxford5k", "rparis6k")
    for which in choices:
        published = RevisitedSource(Config(which)).published
        assert published.checksums == {f"gnd_{which}.pkl": sums[f"gnd_{which}.pkl"]}


def test_archives_by_number_have_their_own_checksums() -> None:
    chosen = choose_files("gldv2", find_entry("gldv2"), ["index:7-8"])
    assert [(file.url, file.checksums) for _, file in chosen] == [
        (
            f"https://s3.amazonaws.com/google-landmark/index/images_00{number}.tar",
            f"md5:https://s3.amazonaws.com/google-landmark/md5sum/index/md5.images_00{number}.txt",
        )
        for number in (7, 8)
    ]


ENTRY = Entry(
    "some",
    "here",
    "free",
    (),
    parts=(
        Part("truth", "", (RemoteFile("http://h/t.pkl", "t/"),)),
        Part("more", "", (RemoteFile("http://h/{number}.tar", "m/", unpack=True, numbers=(1, 3), bytes=10),), True),
        Part(
            "mixed",
            "",
            (RemoteFile("http://h/l.txt", "x/"), RemoteFile("http://h/n{number}.tar", "x/", numbers=(0, 1))),
        ),
    ),
)


def choose(*only: str) -> list[str]:
    return [file.name for _, file in choose_files("some", ENTRY, only)]


def test_parts_that_are_not_optional_are_chosen_or_those_that_are_named() -> None:
    assert choose() == ["t.pkl", "l.txt", "n0.tar", "n1.tar"]
    assert choose("more") == ["1.tar", "2.tar", "3.tar"]
    assert choose("more:2", "m*:1-2") == ["2.tar", "1.tar", "n1.tar"]
    assert choose("truth", "truth") == ["t.pkl"]


@pytest.mark.parametrize(
    ("item", "problem", "fix"),
    [
        ("mor", "no part 'mor'", "'more'"),
        ("zzz", "no part 'zzz'", "--list"),
        ("more:7", "no files", "leave out"),
        ("truth:1", "no files", "leave out"),
        ("more:x", "numbers", "0-9"),
        ("more:2-", "numbers", "0-9"),
        ("more:", "numbers", "0-9"),
    ],
)
def test_parts_and_numbers_that_do_not_exist_are_refused(item: str, problem: str, fix: str) -> None:
    with pytest.raises(InputError, match=problem) as refused:
        choose(item)
    assert fix in refused.value.fix and refused.value.expected


def test_sizes_and_counts_of_a_part() -> None:
    truth, more, mixed = ENTRY.parts
    assert [(part.count, part.bytes, part.unknown) for part in (truth, more, mixed)] == [
        (1, 0, 1),
        (3, 30, 0),
        (3, 0, 3),
    ]


@pytest.mark.parametrize(
    ("to", "unpack", "name", "target"),
    [("a/b/", False, "x.pkl", "a/b/x.pkl"), ("a/y.pkl", False, "x.pkl", "a/y.pkl"), ("a/b/", True, "x.tar", "a/b")],
)
def test_where_a_file_goes(to: str, unpack: bool, name: str, target: str) -> None:
    file = RemoteFile(f"http://h/some%20path/{name}?download=1", to, unpack)
    assert (file.name, file.target.as_posix()) == (name, target)


def test_a_name_that_does_not_exist_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match="no data set called 'gldv3'") as refused:
        find_entry("gldv3")
    assert "'gldv2'" in refused.value.fix


GOOD = '[mine]\ntitle = "t"\nsource = "s"\nlicence = "l"\nlayout = []\n[[mine.parts]]\nname = "p"\nabout = "a"\n'


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ('url = "http://h/a", to = "../a"', "below ROOT"),
        ('url = "http://h/a", to = "/a"', "below ROOT"),
        ('url = "http://h/a", to = ""', "below ROOT"),
        ('url = "http://h/a/..", to = "a/"', "without a name"),
        ('url = "http://h/", to = "a/"', "without a name"),
        ('url = "http://h/a", to = "a", unpack = true', "a folder"),
        ('url = "http://h/a", to = "a", checksum = "crc:1"', "md5"),
        ('url = "http://h/a", to = "a", checksums = "md5:ftp://x"', "md5"),
        ('url = "http://h/a", to = "a", numbers = [3, 1]', "first and the last"),
        ('url = "http://h/a", to = "a", colour = "red"', "colour"),
        ('url = "http://h/a"', "to"),
    ],
)
def test_a_catalogue_of_your_own_is_checked(file: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"{GOOD}files = [{{ {file} }}]\n")
    with pytest.raises(RecipeError, match=words):
        find_entry("mine", path)
    path.write_text(f'{GOOD}files = [{{ url = "http://h/a.tar", to = "a/" }}]\n')
    assert find_entry("mine", path).parts[0].files[0].name == "a.tar"
    with pytest.raises(InputError, match="no data set called 'gldv2'"):
        find_entry("gldv2", path)


def test_a_catalogue_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[mine")
    for path in (tmp_path / "bad.toml", tmp_path / "missing.toml"):
        with pytest.raises(InputError, match="cannot read the catalogue"):
            find_entry("mine", path)
