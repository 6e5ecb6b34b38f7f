"""`resight dedup`, `match` and `lookalikes` end to end, on small drawn scenes."""

import csv
import json
import shutil

import cv2
import numpy as np
import pytest
from PIL import Image
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg

SCENES = 6


def write_pictures(folder):
    """Six scenes, four changed copies of the first, an exact copy, equal pixels, a collage, blank pages."""
    folder.mkdir()
    scenes = [draw_scene(seed) for seed in range(SCENES)]
    for seed, pixels in enumerate(scenes):
        Image.fromarray(pixels).save(folder / f"scene_{seed}.png")
    first = scenes[0]
    write_jpeg(folder / "zero_mirrored.jpg", np.ascontiguousarray(first[:, ::-1]))
    write_jpeg(folder / "zero_cropped.jpg", np.ascontiguousarray(first[60:300, 80:400]))
    write_jpeg(folder / "zero_turned.jpg", np.ascontiguousarray(np.rot90(first)))
    write_jpeg(folder / "zero_grey.jpg", np.repeat(cv2.cvtColor(first, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2))
    shutil.copyfile(folder / "scene_1.png", folder / "one_copied.png")
    Image.fromarray(scenes[2]).save(folder / "two_as_bitmap.bmp")
    Image.fromarray(np.hstack([scenes[3], scenes[4]])).save(folder / "collage_3_4.png")
    for number in range(20):
        Image.new("RGB", (64, 64), "white").save(folder / f"blank_{number:02}.png")
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    root = tmp_path_factory.mktemp("dedup")
    write_pictures(root / "pictures")
    assert run("index", root / "pictures", "--into", root / "pictures.resight").code == 0
    return root


@pytest.fixture(scope="module")
def pairs(pictures):
    ran = run("dedup", pictures / "pictures.resight", "--out", pictures / "pairs.csv", "--html", pictures / "p.html")
    assert ran.code == 0, ran.err
    with (pictures / "pairs.csv").open() as file:
        return list(csv.DictReader(file))


def tell(pairs, *names):
    """The row of two images."""
    return next(row for row in pairs if {row["a"], row["b"]} == set(names))


def test_every_changed_copy_is_a_near_copy_of_the_first_scene_and_in_its_group(pairs):
    for change in ("mirrored", "cropped", "turned", "grey"):
        row = tell(pairs, "scene_0.png", f"zero_{change}.jpg")
        assert row["kind"] == "near_copy", change
        assert float(row["probability"]) > 0.95
        assert row["keep"] == "scene_0.png"


def test_equal_bytes_and_equal_pixels_are_copies(pairs):
    assert tell(pairs, "scene_1.png", "one_copied.png")["kind"] == "copy"
    assert tell(pairs, "scene_2.png", "two_as_bitmap.bmp")["kind"] == "copy"


def test_a_collage_is_found_and_does_not_bring_its_pictures_together(pairs):
    groups = {tell(pairs, "collage_3_4.png", f"scene_{number}.png")["group"] for number in (3, 4)}
    assert len(groups) == 2
    assert not [row for row in pairs if {row["a"], row["b"]} == {"scene_3.png", "scene_4.png"}]


def test_twenty_blank_pages_are_one_group_of_nineteen_pairs(pairs):
    blank = [row for row in pairs if row["a"].startswith("blank") or row["b"].startswith("blank")]
    assert len(blank) == 19
    assert {row["keep"] for row in blank} == {"blank_00.png"}


def test_nothing_else_is_listed(pairs):
    def subject(name):
        return {"one": "1", "two": "2", "zero": "0"}.get(name.split("_")[0], name.split("_")[-1][0])

    rest = [row for row in pairs if not {"blank", "collage"} & {row["a"].split("_")[0], row["b"].split("_")[0]}]
    assert all(subject(row["a"]) == subject(row["b"]) for row in rest)


@pytest.mark.usefixtures("pairs")
def test_the_page_shows_the_groups_and_asks_for_nothing(pictures):
    page = (pictures / "p.html").read_text()
    assert "zero_mirrored.jpg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert page.lstrip().startswith("<!doctype html>")


@pytest.mark.usefixtures("pairs")
def test_no_trace_of_the_work_is_left(pictures):
    assert not (pictures / "pairs.csv.work").exists()


def test_json_states_the_expected_rate_of_false_alarms(pictures):
    ran = run(
        *("dedup", pictures / "pictures.resight", "--out", pictures / "few.csv", "--kinds", "copy", "--json"),
    )
    told = ran.answer
    assert told["kinds"] == {"copy": 21}
    assert told["false_alarm_rate"] == 0


def test_another_collection_is_compared_with_the_first(pictures, tmp_path):
    (tmp_path / "more").mkdir()
    Image.fromarray(np.ascontiguousarray(draw_scene(5)[:, ::-1])).save(tmp_path / "more" / "five.png")
    Image.fromarray(draw_scene(40)).save(tmp_path / "more" / "new.png")
    shutil.copyfile(pictures / "pictures" / "scene_1.png", tmp_path / "more" / "scene_1.png")
    run("index", tmp_path / "more", "--into", tmp_path / "more.resight")
    ran = run(
        *("dedup", pictures / "pictures.resight", "--against", tmp_path / "more.resight", "--out", tmp_path / "p.csv")
    )
    assert ran.code == 0, ran.err
    with (tmp_path / "p.csv").open() as file:
        rows = {(row["a"], row["b"]): row for row in csv.DictReader(file)}
    assert set(rows) == {("scene_5.png", "five.png"), ("scene_1.png", "scene_1.png")}
    assert rows["scene_1.png", "scene_1.png"]["kind"] == "copy"
    assert rows["scene_5.png", "five.png"]["kind"] == "near_copy"
    assert all(row["keep"] == row["a"] for row in rows.values())


def test_collections_of_two_encodings_are_refused_with_both_spaces(pictures, tmp_path):
    run("index", pictures / "pictures", "--into", tmp_path / "sift.resight", "--encoder", "sift")
    ran = run(
        *("dedup", pictures / "pictures.resight", "--against", tmp_path / "sift.resight", "--out", tmp_path / "p.csv")
    )
    assert ran.code == 3
    assert "aggregated" in ran.err and "different recipes" in ran.err


def test_files_that_are_gone_are_said_and_still_compared_by_what_is_stored(pictures, tmp_path):
    shutil.copytree(pictures / "pictures", tmp_path / "pictures")
    run("index", tmp_path / "pictures", "--into", tmp_path / "p.resight")
    (tmp_path / "pictures" / "zero_grey.jpg").unlink()
    ran = run("dedup", tmp_path / "p.resight", "--out", tmp_path / "p.csv")
    assert ran.code == 0
    assert "zero_grey.jpg" in ran.err
    with (tmp_path / "p.csv").open() as file:
        assert tell(list(csv.DictReader(file)), "scene_0.png", "zero_grey.jpg")["kind"] == "same"


@pytest.mark.parametrize("count", [0, 1])
def test_an_empty_collection_and_a_single_image_have_no_pairs(pictures, tmp_path, count):
    run("index", pictures / "pictures" / "scene_0.png", "--into", tmp_path / "one.resight")
    if not count:
        run("delete", tmp_path / "one.resight", "scene_0.png")
    ran = run("dedup", tmp_path / "one.resight", "--out", tmp_path / "p.csv")
    assert ran.code == 0, ran.err
    assert (tmp_path / "p.csv").read_text().splitlines() == ["a,b,kind,probability,group,keep"]


def test_match_gives_each_image_to_one(pictures, tmp_path):
    ran = run(
        *("match", pictures / "pictures.resight", pictures / "pictures.resight", "--one-to-one"),
        *("--out", tmp_path / "m.csv"),
    )
    assert ran.code == 0, ran.err
    with (tmp_path / "m.csv").open() as file:
        rows = list(csv.DictReader(file))
    matched = [row["b"] for row in rows if row["b"]]
    assert len(rows) == 33
    assert len(matched) == len(set(matched))
    assert {row["a"]: row["b"] for row in rows}["scene_5.png"] == "scene_5.png"


def test_lookalikes_leave_out_the_thing_itself(pictures):
    ran = run(
        *("lookalikes", pictures / "pictures.resight", pictures / "pictures" / "scene_0.png", "-k", "3", "--json")
    )
    names = [one["id"] for one in ran.answer["analogues"]]
    assert len(names) == 3
    assert not {"scene_0.png", "zero_grey.jpg", "zero_turned.jpg", "zero_cropped.jpg"} & set(names)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A scene, the half of it in size, an exact copy of that half, and others."""
    root = tmp_path_factory.mktemp("copied")
    (root / "pictures").mkdir()
    for seed in range(4):
        Image.fromarray(draw_scene(seed)).save(root / "pictures" / f"scene_{seed}.png")
    write_jpeg(root / "pictures" / "half.jpg", cv2.resize(draw_scene(0), (240, 180), interpolation=cv2.INTER_AREA))
    shutil.copyfile(root / "pictures" / "half.jpg", root / "pictures" / "half_again.jpg")
    run("index", root / "pictures", "--into", root / "pictures.resight", "--encoder", "sift")
    return root / "pictures.resight"


def list_pairs(collection, folder, *options):
    """Rows of the table, and what was said."""
    ran = run("dedup", collection, "--out", folder / "p.csv", *options)
    assert ran.code == 0, ran.err
    with (folder / "p.csv").open() as file:
        return list(csv.DictReader(file)), ran.out


def test_exact_copies_alone_are_kept_by_one_of_them(copied, tmp_path):
    (row,), _ = list_pairs(copied, tmp_path, "--kinds", "copy")
    assert {row["a"], row["b"]} == {"half.jpg", "half_again.jpg"}
    assert row["keep"] == row["a"]


def test_exact_copies_of_a_near_copy_join_its_group_and_are_on_the_page(copied, tmp_path):
    rows, _ = list_pairs(copied, tmp_path, "--html", tmp_path / "p.html")
    assert {(row["kind"], row["group"], row["keep"]) for row in rows} == {
        ("near_copy", "1", "scene_0.png"),
        ("copy", "1", "scene_0.png"),
    }
    page = (tmp_path / "p.html").read_text()
    assert all(f'alt="{name}"' in page for name in ("scene_0.png", "half.jpg", "half_again.jpg"))


def test_exact_copies_make_no_room_for_doubtful_pairs(copied, tmp_path):
    rows, _ = list_pairs(copied, tmp_path)
    doubt = 1 - min(float(row["probability"]) for row in rows)
    kept, _ = list_pairs(copied, tmp_path, "--false-alarms", 1.01 * doubt)
    assert len(kept) == 2
    (row,), _ = list_pairs(copied, tmp_path, "--false-alarms", 0.7 * doubt)  # of the two pairs together it is a half
    assert (row["kind"], row["keep"]) == ("copy", row["a"])


def test_between_collections_kinds_that_are_not_asked_for_take_no_part(copied, tmp_path):
    rows, _ = list_pairs(copied, tmp_path, "--against", copied, "--kinds", "near_copy")
    assert {row["kind"] for row in rows} == {"near_copy"}
    assert all(row["keep"] == row["a"] for row in rows)


def test_votes_on_a_review_correct_what_is_listed_the_next_time(copied, tmp_path):
    review = tmp_path / "review"
    rows, said = list_pairs(copied, tmp_path, "--review", review)
    assert "corrected by votes" not in said
    before = (review / "pairs.csv").read_text()
    correction = {"scale": 1.0, "shift": -1.0, "pairs": 12, "same": 4.0, "before": 1.0, "after": 0.5}
    (review / "correction.json").write_text(json.dumps(correction))
    corrected, said = list_pairs(copied, tmp_path, "--review", review)
    assert "corrected by votes on 12 pairs" in said
    chance, less = (
        next(float(row["probability"]) for row in some if row["kind"] == "near_copy") for some in (rows, corrected)
    )
    assert less / (1 - less) == pytest.approx(chance / (1 - chance) / np.e, rel=1e-2)
    assert [row["probability"] for row in corrected if row["kind"] == "copy"] == ["1.000000"]
    assert (review / "pairs.csv").read_text() == before  # else the same votes would correct it again
    (review / "correction.json").write_text(json.dumps(correction | {"shift": -20.0}))
    (row,), _ = list_pairs(copied, tmp_path, "--review", review)
    assert row["kind"] == "copy"


def test_another_view_is_found_among_ten_images(tmp_path):
    (tmp_path / "ten").mkdir()
    for seed in range(9):
        write_jpeg(tmp_path / "ten" / f"scene_{seed}.jpg", draw_scene(seed))
    write_jpeg(tmp_path / "ten" / "view.jpg", look_at(draw_scene(0)))
    run("index", tmp_path / "ten", "--into", tmp_path / "ten.resight", "--encoder", "sift")
    rows, _ = list_pairs(tmp_path / "ten.resight", tmp_path)
    assert [(row["a"], row["b"], row["kind"]) for row in rows] == [("scene_0.jpg", "view.jpg", "same")]


def test_a_file_that_cannot_be_read_is_listed_without_a_match(pictures, tmp_path):
    (tmp_path / "some").mkdir()
    for seed in range(3):
        shutil.copyfile(pictures / "pictures" / f"scene_{seed}.png", tmp_path / "some" / f"{seed}.png")
    run("index", tmp_path / "some", "--into", tmp_path / "some.resight")
    (tmp_path / "some" / "0.png").unlink()
    shutil.copyfile(tmp_path / "some" / "2.png", tmp_path / "some" / "1.png")  # another picture by now
    options = ("--out", tmp_path / "m.csv", "--json")
    told = run("match", tmp_path / "some.resight", pictures / "pictures.resight", *options).answer
    assert told["unmatched"] == ["0.png", "1.png"]
    assert [skipped["path"].rsplit("/", 1)[-1] for skipped in told["skipped"]] == ["0.png", "1.png"]
    with (tmp_path / "m.csv").open() as file:
        matched = {row["a"]: row["b"] for row in csv.DictReader(file)}
    assert (matched["0.png"], matched["1.png"]) == ("", "")
    assert matched["2.png"] in ("scene_2.png", "two_as_bitmap.bmp")


def test_lookalikes_leave_out_copies_of_an_image_that_shows_nothing(pictures):
    ran = run(*("lookalikes", pictures / "pictures.resight", pictures / "pictures" / "blank_00.png", "-k", 3, "--json"))
    assert not [one["id"] for one in ran.answer["analogues"] if one["id"].startswith("blank")]
