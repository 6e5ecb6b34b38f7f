"""Planted leaks, from the command to the files: scenes are training classes, views of some of them the evaluation."""

import csv
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg

from resight.apps.cli import serve
from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings
from resight.audit.dedup.pairs import Pair
from resight.audit.leaks.overlap import find_overlap
from resight.audit.review.review import Review
from resight.collection import open_collection
from resight.encode.encoder import Encoder
from resight.types import Descriptors, Picture

PRESET = ("--encoder", "sift")
CLASSES = ("tower", "Tower Oxford", "museum", "gate", "house")


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five classes of two images: scene c as it is, and from nearer by; and a photo without a class."""
    root = tmp_path_factory.mktemp("leaks") / "train"
    for number, name in enumerate(CLASSES):
        folder = root / name
        folder.mkdir(parents=True)
        write_jpeg(folder / "whole.jpg", draw_scene(number))
        write_jpeg(folder / "near.jpg", draw_scene(number)[40:, 40:])
    write_jpeg(root / "loose.jpg", draw_scene(20))
    return root


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Views of the scenes tower and museum and of one that is nowhere else, and the photo without a class."""
    root = tmp_path_factory.mktemp("evaluation")
    for name, seed in (("tour", 0), ("museum", 2), ("elsewhere", 30), ("loose", 20)):
        (root / name).mkdir()
        write_jpeg(root / name / "view.jpg", look_at(draw_scene(seed)))
    return root


@pytest.fixture(scope="module")
def audited(train: Path, evaluation: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit") / "found"
    assert run("audit", train, evaluation, "--out", folder, *PRESET).code == 0
    return folder


@pytest.fixture
def own(audited: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(audited, tmp_path / "audit"))


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_planted_leak_is_confirmed_and_nothing_else(audited: Path) -> None:
    confirmed = {(row["a"], row["b"]) for row in read(audited / "evidence.csv") if row["decision"].startswith("conf")}
    assert confirmed == {
        ("tour/view.jpg", "tower/whole.jpg"),
        ("tour/view.jpg", "tower/near.jpg"),
        ("museum/view.jpg", "museum/whole.jpg"),
        ("museum/view.jpg", "museum/near.jpg"),
        ("loose/view.jpg", "loose.jpg"),
    }


@pytest.mark.parametrize("preset", ["sift", "sift_tokens"])
def test_an_audit_encodes_no_image_that_its_collections_hold(
    preset: str, train: Path, evaluation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections = [open_collection(tmp_path / name, preset) for name in ("train.resight", "evaluation.resight")]
    for collection, images in zip(collections, (train, evaluation), strict=True):
        collection.add(images)
    for collection in collections:  # builds the encoders, which compare how they describe a picture of noise
        assert collection.encode_query(next(iter(collection.records())).ref).id
    encoded: list[str] = []
    encode = Encoder.encode

    def count(self: Encoder, pictures: Sequence[Picture], *settings: object) -> Iterator[tuple[Descriptors, ...]]:
        encoded.extend(picture.ref.id for picture in pictures if picture.ref.id != "noise")
        return encode(self, pictures, *settings)  # type: ignore[arg-type]

    monkeypatch.setattr(Encoder, "encode", count)
    overlap = find_overlap(*collections)
    assert encoded == []
    found = {leak.pair.a for leak in overlap.leaks if leak.pair.probability > 0.9}
    assert found == {"tour/view.jpg", "museum/view.jpg", "loose/view.jpg"}


def test_classes_go_whole_and_what_has_no_class_goes_alone(audited: Path) -> None:
    rows = [(row["class"], row["images"], row["evaluation"]) for row in read(audited / "removal.csv")]
    assert rows == [
        ("loose.jpg", "1", "loose/view.jpg"),
        ("museum", "2", "museum/view.jpg"),
        ("tower", "2", "tour/view.jpg"),
    ]


def test_the_clean_manifest_can_be_indexed_and_lacks_what_went(audited: Path, tmp_path: Path) -> None:
    rows = read(audited / "clean.csv")
    assert sorted({row["label"] for row in rows}) == ["Tower Oxford", "gate", "house"]
    indexed = run("index", audited / "clean.csv", "--into", tmp_path / "clean.resight", *PRESET, "--json").answer
    assert (indexed["added"], indexed["skipped"]) == (6, [])


def test_the_split_names_every_evaluation_image(audited: Path) -> None:
    assert {row["id"]: row["split"] for row in read(audited / "overlap.csv")} == {
        "elsewhere/view.jpg": "other",
        "loose/view.jpg": "overlapping",
        "museum/view.jpg": "overlapping",
        "tour/view.jpg": "overlapping",
    }


def test_the_tables_are_those_of_the_paper(audited: Path) -> None:
    found = json.loads((audited / "audit.json").read_text())
    assert found["sets"][-1] == {"name": "total", "images": 4, "touched": 3, "classes": 2, "removed": 5}
    assert [(row["images"], row["classes"]) for row in found["sizes"]] == [(11, 5), (6, 3)]
    text = (audited / "audit.md").read_text()
    assert "| EVAL | 4 | 3 (75%) | 2 | 5 |" in text
    assert "| TRAIN without the overlap | 6 | 3 |" in text


def test_it_is_said_that_nobody_has_voted_and_which_names_differ(audited: Path) -> None:
    notes = json.loads((audited / "audit.json").read_text())["notes"]
    assert notes[0].startswith("no votes yet: 5 pairs")
    assert "the evaluation class 'tour' is 'tower' in the training set" in notes
    assert any(note.startswith("1 training images have no class") for note in notes)


def test_votes_decide_the_next_time_and_are_kept(own: Path, train: Path, evaluation: Path) -> None:
    review = Review.open(own)
    for number, pair in enumerate(review.pairs, start=1):
        review.vote("Kim", number, "different" if pair.a.startswith("museum") else "same")
    assert run("audit", train, evaluation, "--out", own, *PRESET).code == 0
    rows = read(own / "removal.csv")
    assert "museum" not in {row["class"] for row in rows}
    assert "tower" in {row["class"] for row in rows}
    assert Review.open(own).progress("Kim").voted == len(review.pairs)
    assert json.loads((own / "audit.json").read_text())["confirmed_by_probability"] == 0


def test_votes_and_texts_may_come_from_files(own: Path, train: Path, evaluation: Path, tmp_path: Path) -> None:
    lines = ["a,b,reviewer,verdict"] + [f"{row['a']},{row['b']},Kim,different" for row in read(own / "pairs.csv")]
    (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "texts.txt").write_text("oxford\n\n")
    files = ("--votes", tmp_path / "votes.csv", "--texts", tmp_path / "texts.txt")
    words = ("audit", train, evaluation, "--out", own, *PRESET, *files, "--json")
    found = run(*words).answer
    assert found["removed"] == []  # a name alone removes nothing
    assert found["candidates"] == [{"class": "Tower Oxford", "text": "oxford", "decision": "open"}]
    assert any(note.startswith("1 class is a candidate by name") for note in found["notes"])
    table = (own / "candidates.csv").read_text()
    assert table.splitlines()[1] == "Tower Oxford,Tower Oxford,2,oxford,,"
    (own / "candidates.csv").write_text(table.replace("oxford,,", "oxford,Kim,same"))
    found = run(*words).answer
    assert [(row["name"], row["why"]) for row in found["removed"]] == [("Tower Oxford", "the name contains 'oxford'")]
    assert found["sets"][-2:] == [
        {"name": "text", "images": None, "touched": None, "classes": 1, "removed": 2},
        {"name": "total", "images": 4, "touched": 0, "classes": 1, "removed": 2},
    ]


def test_the_same_images_twice_are_not_paired_with_themselves(train: Path, tmp_path: Path) -> None:
    found = run("audit", train, train, "--out", tmp_path / "audit", *PRESET, "--json").answer
    assert found["notes"][1].startswith("TRAIN and EVAL are the same images")
    rows = read(tmp_path / "audit" / "evidence.csv")
    assert all(row["a"] != row["b"] for row in rows)
    assert len({frozenset((row["a"], row["b"])) for row in rows}) == len(rows)
    confirmed = {frozenset((row["a"], row["b"])) for row in rows if row["decision"] == "confirmed by probability"}
    assert confirmed == {frozenset((f"{name}/near.jpg", f"{name}/whole.jpg")) for name in CLASSES}


def test_blank_images_of_many_classes_tell_of_none(tmp_path: Path) -> None:
    blank = np.full((200, 300, 3), 128, np.uint8)
    for number in range(12):
        folder = tmp_path / "train" / f"class {number}"
        folder.mkdir(parents=True)
        write_jpeg(folder / "blank.jpg", blank)
        write_jpeg(folder / "scene.jpg", draw_scene(number))
    (tmp_path / "eval").mkdir()
    for number in range(4):
        write_jpeg(tmp_path / "eval" / f"blank_{number}.jpg", blank)
    found = run("audit", tmp_path / "train", tmp_path / "eval", "--out", tmp_path / "audit", *PRESET, "--json").answer
    assert found["removed"] == []
    assert any("12 training images of 12 classes" in note for note in found["notes"])


def test_a_copy_is_a_leak_whatever_a_search_says(tmp_path: Path) -> None:
    blank = np.full((200, 300, 3), 128, np.uint8)
    for name in ("train", "eval"):
        (tmp_path / name / "thing").mkdir(parents=True)
        write_jpeg(tmp_path / name / "thing" / f"{name}.jpg", blank)
    write_jpeg(tmp_path / "train" / "thing" / "scene.jpg", draw_scene(1))
    found = run("audit", tmp_path / "train", tmp_path / "eval", "--out", tmp_path / "audit", *PRESET, "--json").answer
    assert [(row["name"], row["images"]) for row in found["removed"]] == [("thing", 2)]
    assert read(tmp_path / "audit" / "evidence.csv")[0]["kind"] == "copy"


def test_votes_are_summed_up_exported_and_correct_the_probability(own: Path, tmp_path: Path) -> None:
    review = Review.open(own)
    for number, _ in enumerate(review.pairs, start=1):
        review.vote("Kim", number, "same")
        review.vote("Lee", number, "same" if number > 1 else "unsure")
    said = run("votes", own, "--out", tmp_path / "votes.csv")
    assert said.code == 0
    count = len(review.pairs)
    assert f"Kim, Lee: agree on {count - 1:,} of {count:,}" in said.out
    assert len(read(tmp_path / "votes.csv")) == 2 * count


def test_too_few_votes_correct_nothing(own: Path) -> None:
    refused = run("votes", own, "--correct")
    assert refused.code == 2
    assert "too few votes" in refused.err
    assert not (own / "correction.json").exists()


@pytest.mark.parametrize("words", [("one",), ("one", "two", "three")])
def test_an_audit_needs_two_sets(words: tuple[str, ...], tmp_path: Path) -> None:
    refused = run("audit", *words, "--out", tmp_path / "audit")
    assert refused.code == 2
    assert "TRAIN and EVAL" in refused.err


def test_an_unknown_published_list_is_refused(tmp_path: Path) -> None:
    refused = run("audit", tmp_path / "x.csv", "--published", "imagenet", "--out", tmp_path / "y.csv")
    assert (refused.code, "rgldv2" in refused.err) == (2, True)


def vote_on_ten(folder: Path, *, same: int, searched: bool = True) -> Review:
    """The machine says 98 % of ten pairs, of which people call all but some different: it is far too sure."""
    pairs = [
        Pair("tour/view.jpg", f"{name}/{view}.jpg", "same", 0.98) for name in CLASSES for view in ("near", "whole")
    ]
    train = folder / "train.resight"
    calibration = open_collection(train).view().pipeline.calibration if searched else None
    review = Review.create(folder, "too sure", folder / "eval.resight", train, pairs, calibration=calibration)
    for number in range(1, len(pairs) + 1):
        review.vote("Kim", number, "same" if number <= same else "different")
    return review


def test_votes_correct_the_probabilities_of_later_searches_once_however_often(own: Path, evaluation: Path) -> None:
    vote_on_ten(own, same=1)
    view = evaluation / "tour" / "view.jpg"
    before = open_collection(own / "train.resight").search(view, k=1)[0]
    for _ in range(3):
        said = run("votes", own, "--calibrate", "--json").answer["correction"]
        assert said["after"] < said["before"]
        assert json.loads((own / "correction.json").read_text()) == said
        after = open_collection(own / "train.resight").search(view, k=1)[0]
        assert after.id == before.id
        assert after.score == pytest.approx(said["scale"] * before.score + said["shift"], rel=1e-4)


@pytest.mark.parametrize(("same", "searched", "words"), [(0, True, "all votes agree"), (3, False, "`resight audit`")])
def test_votes_of_one_kind_and_on_other_pairs_than_an_audits_calibrate_nothing(
    own: Path, same: int, searched: bool, words: str
) -> None:
    vote_on_ten(own, same=same, searched=searched)
    before = open_collection(own / "train.resight").view().pipeline.calibration
    refused = run("votes", own, "--calibrate")
    assert (refused.code, words in refused.err) == (2, True)
    assert open_collection(own / "train.resight").view().pipeline.calibration == before
    assert run("votes", own, "--correct").code == 0


def test_an_audit_keeps_the_calibration_that_its_pairs_were_found_with(audited: Path) -> None:
    found_with = Review.open(audited).calibration
    assert found_with is not None
    assert found_with == open_collection(audited / "train.resight").view().pipeline.calibration


def test_a_textured_placeholder_of_many_classes_tells_of_none(tmp_path: Path) -> None:
    for number in range(6):
        folder = tmp_path / "train" / f"class {number}"
        folder.mkdir(parents=True)
        write_jpeg(folder / "placeholder.jpg", draw_scene(50))
        write_jpeg(folder / "scene.jpg", draw_scene(number))
    (tmp_path / "eval").mkdir()
    write_jpeg(tmp_path / "eval" / "placeholder.jpg", draw_scene(50))
    # The placeholder beside a scene: what else it shows is found behind all the placeholders.
    write_jpeg(tmp_path / "eval" / "both.jpg", np.hstack([draw_scene(50), draw_scene(3)[:, :300]]))
    found = run(
        *("audit", tmp_path / "train", tmp_path / "eval", "--out", tmp_path / "audit", "-k", 2, *PRESET, "--json")
    ).answer
    assert [(row["name"], row["evaluation"]) for row in found["removed"]] == [("class 3", ["both.jpg"])]
    assert not [row for row in read(tmp_path / "audit" / "pairs.csv") if "placeholder" in row["b"]]


def test_two_parts_of_one_file_are_not_copies(tmp_path: Path) -> None:
    write_jpeg(tmp_path / "wide.jpg", np.hstack([draw_scene(0), draw_scene(1)]))
    for name, box in (("train", "0,0,480,360"), ("eval", "480,0,960,360")):
        (tmp_path / f"{name}.csv").write_text(f'id,path,label,box\npart,wide.jpg,thing,"{box}"\n')
    found = run(
        *("audit", tmp_path / "train.csv", tmp_path / "eval.csv", "--out", tmp_path / "audit", *PRESET, "--json")
    ).answer
    assert not any(note.startswith("TRAIN and EVAL are the same") for note in found["notes"])
    assert not [row for row in read(tmp_path / "audit" / "pairs.csv") if row["kind"] == "copy"]
    assert found["removed"] == []


def test_of_two_parts_and_their_copies_only_those_of_the_same_part_are_copies(tmp_path: Path) -> None:
    write_jpeg(tmp_path / "wide.jpg", np.hstack([draw_scene(0), draw_scene(1)]))
    boxes = {"left": "0,0,480,360", "right": "480,0,960,360"}
    lines = [f'{name},wide.jpg,{name},"{box}"' for name, box in boxes.items()]
    (tmp_path / "train.csv").write_text("\n".join(["id,path,label,box", *lines]) + "\n")
    (tmp_path / "eval.csv").write_text(f"id,path,label,box\nagain,{lines[1].partition(',')[2]}\n")
    run("audit", tmp_path / "train.csv", tmp_path / "eval.csv", "--out", tmp_path / "audit", *PRESET)
    copies = [(row["a"], row["b"]) for row in read(tmp_path / "audit" / "pairs.csv") if row["kind"] == "copy"]
    assert copies == [("again", "right")]


def test_of_the_same_images_twice_both_of_a_pair_overlap(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for number in range(2):
        write_jpeg(tmp_path / "photos" / f"{number}.jpg", draw_scene(number))
        write_jpeg(tmp_path / "photos" / f"{number} near.jpg", draw_scene(number)[40:, 40:])
    write_jpeg(tmp_path / "photos" / "lone.jpg", draw_scene(9))
    photos, folder = tmp_path / "photos", tmp_path / "audit"
    found = run("audit", photos, photos, "--out", folder, *PRESET, "--json").answer
    assert all(row["a"] < row["b"] for row in read(folder / "pairs.csv"))
    assert {row["id"]: (row["split"], row["matches"]) for row in read(folder / "overlap.csv")} == {
        "0 near.jpg": ("overlapping", "1"),
        "0.jpg": ("overlapping", "1"),
        "1 near.jpg": ("overlapping", "1"),
        "1.jpg": ("overlapping", "1"),
        "lone.jpg": ("other", "0"),
    }
    assert found["sets"][-1]["touched"] == 4


def test_a_review_of_two_collections_of_one_name_can_be_served(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / side / "photos.resight" for side in ("one", "two")]
    for place, name in zip(places, ("eval", "train"), strict=True):
        shutil.copytree(own / f"{name}.resight", place)
    Review.create(tmp_path / "review", "x", *places, [Pair("tour/view.jpg", "tower/whole.jpg", "same", 0.9)])
    served: list[Path] = []
    monkeypatch.setattr(serve, "serve", lambda collections, **_: served.extend(collections))
    assert run("review", tmp_path / "review").code == 0
    settings = ServiceSettings(serve.name_collections(served), reviews=(tmp_path / "review",))
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        for side in ("a", "b"):
            assert client.get(f"/api/reviews/review/picture?pair=1&side={side}").status_code == 200


def test_how_the_pairs_are_shown_outlives_a_second_audit(own: Path, train: Path, evaluation: Path) -> None:
    settings = json.loads((own / "review.json").read_text())
    (own / "review.json").write_text(json.dumps(settings | {"blind": False, "order": "given"}))
    assert run("audit", train, evaluation, "--out", own, *PRESET).code == 0
    again = Review.open(own)
    assert (again.blind, again.order) == (False, "given")


def test_duplicates_are_not_written_over_the_pairs_of_an_audit(own: Path, tmp_path: Path) -> None:
    before = (own / "pairs.csv").read_bytes()
    refused = run("dedup", own / "train.resight", "--out", tmp_path / "p.csv", "--review", own)
    assert (refused.code, "the review of an audit" in refused.err) == (2, True)
    assert (own / "pairs.csv").read_bytes() == before
