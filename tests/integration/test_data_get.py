"""`resight data get`, from a server on this machine: whole data sets, stops, manual parts, and what is refused."""

import hashlib
import io
import json
import pickle
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.download_server import Served, Server, serve_files
from support.running import run, state_of
from support.samples import craterbench, gldv2, revisited

from resight.data import download, http_download
from resight.data.download import FOLDER


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(http_download, "sleep", lambda _: None)
    with serve_files({}) as served:
        yield served


def pack(folder: Path, kind: str = "w:gz") -> bytes:
    """A tar of a folder's files."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=kind) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.add(path, path.relative_to(folder).as_posix())
    return data.getvalue()


def write_catalogue(server: Server, path: Path, name: str, parts: str, more: str = "") -> Path:
    head = f'[{name}]\ntitle = "Some set"\nsource = "here"\nlicence = "CC0"\nlayout = ["a/b.jpg"]\n{more}\n'
    path.write_text(head + parts.replace("SERVER", server.url))
    return path


@pytest.fixture
def oxford(server: Server, tmp_path: Path) -> Path:
    """A mirror of ROxford5k: ground truth with a checksum, and images in an archive with folders; and its catalogue."""
    (tmp_path / "made").mkdir()
    revisited.write(tmp_path / "made", np.random.default_rng(0))
    truth = (tmp_path / "made" / "roxford5k" / "gnd_roxford5k.pkl").read_bytes()
    server.files["/gnd_roxford5k.pkl"] = Served(truth)
    server.files["/images.tgz"] = Served(pack(tmp_path / "made" / "roxford5k" / "jpg"))
    server.files["/extra.tar"] = Served(pack(tmp_path / "made" / "revisitop1m" / "jpg", "w"))
    parts = f"""
[[revisited.parts]]
name = "oxford"
about = "truth and images"
files = [
    {{ url = "SERVER/gnd_roxford5k.pkl", to = "roxford5k/", checksum = "sha256:{hashlib.sha256(truth).hexdigest()}" }},
    {{ url = "SERVER/images.tgz", to = "roxford5k/jpg/", unpack = true, flat = true }},
]
[[revisited.parts]]
name = "extra"
about = "distractors"
optional = true
files = [{{ url = "SERVER/extra.tar", to = "revisitop1m/jpg/", unpack = true }}]
[[revisited.parts]]
name = "form"
about = "by form"
optional = true
reason = "a form"
manual = ["fill in the form, and put the file to ROOT/form/"]
"""
    return write_catalogue(server, tmp_path / "catalogue.toml", "revisited", parts)


def test_a_data_set_is_downloaded_unpacked_and_readable(oxford: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    ran = run("data", "get", "revisited", root, "--catalogue", oxford, "--yes")
    assert ran.code == 0, ran.err
    assert "Some set: 2 files" in ran.err and "licence: CC0" in ran.err and "source: here" in ran.err
    assert "sha256 checksum right; to roxford5k/gnd_roxford5k.pkl" in ran.err
    assert "no checksum known; 8 files in roxford5k/jpg" in ran.err
    assert f"revisited is in {root}" in ran.out
    assert f"to do by hand: fill in the form, and put the file to {root}/form/" in ran.out
    assert f"check it with: resight data check revisited {root}" in ran.out
    checked = run("data", "check", "revisited", root)
    assert "all images can be used" in checked.out
    assert sorted(path.name for path in (root / FOLDER).iterdir()) == ["done.json", "writer.lock"]
    assert not (root / "revisitop1m").exists()


def test_a_second_run_downloads_nothing_and_only_adds_a_part(oxford: Path, server: Server, tmp_path: Path) -> None:
    root = tmp_path / "root"
    run("data", "get", "revisited", root, "--catalogue", oxford, "--yes")
    before, server.requests[:] = state_of(root), []
    ran = run("data", "get", "revisited", root, "--catalogue", oxford)
    assert ran.code == 0 and "was in" in ran.out
    assert (state_of(root), server.requests) == (before, [])
    answer = run("data", "get", "revisited", root, "--catalogue", oxford, "--yes", "--only", "ext*", "--json").answer
    assert [(file["part"], file["files"], file["to"]) for file in answer["files"]] == [("extra", 4, "revisitop1m/jpg")]
    assert {name for method, name, _ in server.requests if method == "GET"} == {"/extra.tar"}
    assert run("data", "check", "revisited", root, "--set", "distractors=../revisitop1m", "--json").code == 1
    loaded = run(
        "data", "manifest", "revisited", root, "--set", "distractors=../revisitop1m", "--out", root / "m.jsonl"
    )
    assert "10 database images" in loaded.out


def test_without_a_terminal_it_refuses_without_yes_and_writes_nothing(
    oxford: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    ran = run("data", "get", "revisited", tmp_path / "root", "--catalogue", oxford)
    assert ran.code == 2
    assert "expected: a terminal, or --yes" in ran.err and "licence: CC0" in ran.err
    assert not (tmp_path / "root").exists()
    assert not [request for request in server.requests if request[0] == "GET"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_person_is_asked_first(
    answer: str, code: int, oxford: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    ran = run("data", "get", "revisited", tmp_path / "root", "--catalogue", oxford)
    assert ran.code == code
    assert "Download these 2 files (size" in ran.err
    assert (tmp_path / "root").exists() == (code == 0)


def test_a_download_that_is_cut_goes_on_in_the_next_run(oxford: Path, server: Server, tmp_path: Path) -> None:
    server.files["/images.tgz"].cuts = [5_000, *[0] * 30]
    root = tmp_path / "root"
    ran = run("data", "get", "revisited", root, "--catalogue", oxford, "--yes")
    assert ran.code == 2 and "broke off" in ran.err and "goes on where it stopped" in ran.err
    server.files["/images.tgz"].cuts, server.requests[:] = [], []
    assert run("data", "get", "revisited", root, "--catalogue", oxford, "--yes").code == 0
    assert server.ranges("/images.tgz") == ["bytes=5000-"]
    assert server.ranges("/gnd_roxford5k.pkl") == []
    assert "all images can be used" in run("data", "check", "revisited", root).out


def test_a_process_that_is_killed_leaves_a_state_that_the_next_run_completes(
    oxford: Path, server: Server, tmp_path: Path
) -> None:
    server.files["/images.tgz"].stall = 60.0
    root = tmp_path / "root"
    command = [
        sys.executable,
        "-m",
        "resight",
        "data",
        "get",
        "revisited",
        str(root),
        "--catalogue",
        str(oxford),
        "--yes",
    ]
    half = len(server.files["/images.tgz"].content) // 2
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 300
            while not any(path.stat().st_size >= half for path in root.glob(f"{FOLDER}/*-images.tgz.part")):
                assert time.monotonic() < deadline and process.poll() is None
                time.sleep(0.02)
        finally:
            process.kill()
    assert run("data", "get", "revisited", root, "--catalogue", oxford, "--yes").code == 0
    assert server.ranges("/images.tgz") == ["", f"bytes={half}-"]
    assert "all images can be used" in run("data", "check", "revisited", root).out


def test_an_unpacking_that_stopped_goes_on_without_a_second_download(
    oxford: Path, server: Server, tmp_path: Path
) -> None:
    root = tmp_path / "root"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(download, "unpack", stop)
        assert run("data", "get", "revisited", root, "--catalogue", oxford, "--yes").code != 0
    server.requests[:] = []
    assert run("data", "get", "revisited", root, "--catalogue", oxford, "--yes").code == 0
    assert server.ranges("/images.tgz") == []


def test_a_wrong_checksum_a_missing_file_and_a_web_page(oxford: Path, server: Server, tmp_path: Path) -> None:
    good = server.files["/gnd_roxford5k.pkl"]
    cases = {
        "not the file that was published": Served(good.content + b"x"),
        "HTTP 404": None,
        "web page instead of": Served(b"<html>login</html>", kind="text/html"),
    }
    for words, served in cases.items():
        server.files.pop("/gnd_roxford5k.pkl", None)
        if served:
            server.files["/gnd_roxford5k.pkl"] = served
        ran = run("data", "get", "revisited", tmp_path / "root", "--catalogue", oxford, "--yes")
        assert ran.code == 2 and words in ran.err and "fix: " in ran.err
        assert not (tmp_path / "root" / "roxford5k" / "gnd_roxford5k.pkl").exists()
    server.files["/gnd_roxford5k.pkl"] = good
    assert run("data", "get", "revisited", tmp_path / "root", "--catalogue", oxford, "--yes").code == 0


def test_an_archive_that_is_damaged_or_hostile_is_deleted_and_fetched_again(
    oxford: Path, server: Server, tmp_path: Path
) -> None:
    good, root = server.files["/images.tgz"].content, tmp_path / "root"
    evil = io.BytesIO()
    with tarfile.open(fileobj=evil, mode="w:gz") as archive:
        member = tarfile.TarInfo("../../evil.jpg")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"evil"))
    for content, words in ((good[:-100], "damaged"), (evil.getvalue(), "leads out"), (b"text", "damaged")):
        server.files["/images.tgz"] = Served(content)
        ran = run("data", "get", "revisited", root, "--catalogue", oxford, "--yes")
        assert ran.code == 2 and words in ran.err, ran.err
        assert not [path for path in tmp_path.rglob("*.jpg") if "made" not in path.parts]
    server.files["/images.tgz"] = Served(good)
    assert run("data", "get", "revisited", root, "--catalogue", oxford, "--yes").code == 0
    assert "all images can be used" in run("data", "check", "revisited", root).out


def test_files_that_exist_are_never_overwritten(oxford: Path, server: Server, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "roxford5k" / "jpg").mkdir(parents=True)
    mine = root / "roxford5k" / "gnd_roxford5k.pkl"
    mine.write_bytes(pickle.dumps({"mine": 1}))
    before = mine.read_bytes()
    ran = run("data", "get", "revisited", root, "--catalogue", oxford, "--yes")
    assert ran.code == 4 and "exists and differs" in ran.err
    assert mine.read_bytes() == before
    mine.write_bytes(server.files["/gnd_roxford5k.pkl"].content)  # the same bytes are no conflict, and not fetched
    server.requests[:] = []
    (root / "roxford5k" / "jpg" / "keble_000000.jpg").write_bytes(b"mine")
    ran = run("data", "get", "revisited", root, "--catalogue", oxford, "--yes")
    assert ran.code == 4 and "keble_000000.jpg exists and differs" in ran.err
    assert server.ranges("/gnd_roxford5k.pkl") == []
    assert (root / "roxford5k" / "jpg" / "keble_000000.jpg").read_bytes() == b"mine"
    (root / "roxford5k" / "jpg" / "keble_000000.jpg").unlink()
    assert run("data", "get", "revisited", root, "--catalogue", oxford, "--yes").code == 0


def test_a_disk_that_is_too_small_is_refused_before_the_question(
    oxford: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(http_download.shutil, "disk_usage", lambda _: usage._replace(free=http_download.SPARE + 10_000))
    ran = run("data", "get", "revisited", tmp_path / "root", "--catalogue", oxford, "--yes")
    assert ran.code == 4 and "too small for the download of revisited" in ran.err
    assert not (tmp_path / "root").exists()


def test_two_runs_at_once_do_not_mix(oxford: Path, tmp_path: Path) -> None:
    from resight.files.lock import writer_lock

    (tmp_path / "root" / FOLDER).mkdir(parents=True)
    with writer_lock(tmp_path / "root" / FOLDER):
        ran = run("data", "get", "revisited", tmp_path / "root", "--catalogue", oxford, "--yes")
    assert ran.code == 3 and "another process is writing" in ran.err


def test_archives_by_number_with_checksums_of_the_makers(server: Server, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    gldv2.write(tmp_path / "made", np.random.default_rng(0))
    letters = {0: "0", 1: "af"}
    for number, starts in letters.items():
        for folder in (tmp_path / "made" / "train").iterdir():
            if folder.name in starts:
                shutil.move(folder, tmp_path / f"archive{number}" / folder.name)
        data = pack(tmp_path / f"archive{number}", "w")
        server.files[f"/images_00{number}.tar"] = Served(data)
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
        server.files[f"/md5.images_00{number}.txt"] = Served(f"{digest}  images_00{number}.tar\n".encode())
    server.files["/train_clean.csv"] = Served((tmp_path / "made" / "train_clean.csv").read_bytes(), kind="text/csv")
    parts = """
[[gldv2.parts]]
name = "train"
about = "all"
[[gldv2.parts.files]]
url = "SERVER/train_clean.csv"
to = "train_clean.csv"
[[gldv2.parts.files]]
url = "SERVER/images_{number:03d}.tar"
checksums = "md5:SERVER/md5.images_{number:03d}.txt"
to = "train/"
unpack = true
numbers = [0, 1]
bytes = 10_000
"""
    catalogue = write_catalogue(server, tmp_path / "c.toml", "gldv2", parts)
    root = tmp_path / "root"
    words = ("data", "get", "gldv2", root, "--catalogue", catalogue, "--yes")
    assert "md5 checksum right" in run(*words, "--only", "train:1").err
    assert not (root / "train_clean.csv").exists()
    assert sorted(folder.name for folder in (root / "train").iterdir()) == ["a", "f"]
    server.files["/md5.images_000.txt"] = Served(b"0" * 32)
    ran = run(*words)
    assert ran.code == 2 and "expected: md5:00000000" in ran.err
    server.files["/md5.images_000.txt"] = Served(
        hashlib.md5(server.files["/images_000.tar"].content).hexdigest().encode()
    )
    assert run(*words).code == 0
    assert server.ranges("/images_001.tar") == [""]  # once
    assert run("data", "check", "gldv2", root, "--json").code == 1
    assert json.loads(run("data", "check", "gldv2", root, "--json").out)["missing"] == []


def test_a_zip_with_folders_below_the_data_sets_own(server: Server, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    craterbench.write(tmp_path / "made", np.random.default_rng(0))
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path in sorted((tmp_path / "made" / "images").rglob("*.jpg")):
            archive.write(path, path.relative_to(tmp_path / "made").as_posix())
    server.files["/images.zip"] = Served(data.getvalue())
    lists = ("splits/test.json", "splits/train.json", "metadata/query_relevance.json")
    for name in lists:
        server.files[f"/{name}"] = Served((tmp_path / "made" / name).read_bytes(), kind="application/json")
    files = "".join(f'{{ url = "SERVER/{name}", to = "CraterBench-R/{name}" }},\n' for name in lists)
    unpacked = '{ url = "SERVER/images.zip", to = "CraterBench-R/", unpack = true }'
    parts = f'[[craterbench.parts]]\nname = "all"\nabout = "all"\nfiles = [\n{files}{unpacked}]\n'
    catalogue = write_catalogue(server, tmp_path / "c.toml", "craterbench", parts)
    assert run("data", "get", "craterbench", tmp_path / "root", "--catalogue", catalogue, "-y").code == 0
    assert "all images can be used" in run("data", "check", "craterbench", tmp_path / "root").out


def test_a_data_set_behind_a_form_says_what_to_do(tmp_path: Path) -> None:
    ran = run("data", "get", "msls", tmp_path / "root")
    assert ran.code == 2
    assert "fill in the form on https://www.mapillary.com/dataset/places" in ran.err
    assert f"{tmp_path / 'root'}/msls/" in ran.err and "msls/train_val/cph/query/raw.csv" in ran.err
    assert f"resight data check msls {tmp_path / 'root'}" in ran.err
    assert not (tmp_path / "root").exists()


def test_a_part_behind_a_form_says_what_to_do(oxford: Path, tmp_path: Path) -> None:
    ran = run("data", "get", "revisited", tmp_path / "root", "--catalogue", oxford, "--only", "form")
    assert ran.code == 2 and "actual: a form" in ran.err and "fill in the form" in ran.err


def test_parts_are_listed_without_a_folder_or_a_network() -> None:
    ran = run("data", "get", "gldv2", "--list")
    assert ran.code == 0
    assert "train" in ran.out and "500.0 GB" in ran.out and "only with --only" in ran.out and "CC BY 4.0" in ran.out
    parts = {part["name"]: part for part in run("data", "get", "ilias", "--list", "--json").answer["parts"]}
    assert parts["yfcc100m"]["manual"] and parts["core"]["files"] == 1
    assert "by FTP" in run("data", "get", "instre", "--list").out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("gldv3", "root"), "no data set called 'gldv3'"),
        (("gldv2",), "no folder to download to"),
        (("gldv2", "root", "--only", "trian"), "'train'"),
        (("gldv2", "root", "--catalogue", "missing.toml"), "cannot read the catalogue"),
    ],
)
def test_what_does_not_exist_is_refused(
    words: tuple[str, ...], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("data", "get", *words)
    assert ran.code == 2 and error in ran.err
    assert list(tmp_path.iterdir()) == []
