"""The Python API over a whole life of a collection: adding, changing, deleting, reopening."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.scenes import box_around, draw_scene, look_at, overlap, write_jpeg, write_scenes

import resight
from resight.collection import metadata
from resight.errors import CollectionBusy, CollectionError, InputError, SpaceMismatch, VersionMismatch
from resight.files.lock import writer_lock
from resight.recipe import load


def figures(report: resight.AddReport) -> tuple[int, int, int, int]:
    return report.added, report.updated, report.unchanged, len(report.skipped)


@pytest.mark.parametrize("preset", ["sift", "sift_vlad"])
def test_a_preset_finds_and_locates_after_it_was_opened_again(
    scenes: Path, view: Path, tmp_path: Path, preset: str
) -> None:
    photos = resight.open(tmp_path / "c.resight", preset)
    assert photos.search(view) == []
    assert figures(photos.add(scenes)) == (12, 0, 0, 0)
    hits = photos.search(view, k=3)
    assert [len(hits), hits[0].id, hits[0].path] == [3, "scene_07.jpg", scenes / "scene_07.jpg"]
    assert hits[0].box is not None
    assert overlap(hits[0].box, box_around()) > 0.9
    assert hits[0].probability is None or hits[0].probability > 0.5
    assert resight.open(tmp_path / "c.resight").search(view, k=3) == hits


def test_adding_again_takes_in_only_what_is_new_or_has_changed(tmp_path: Path, view: Path) -> None:
    folder = tmp_path / "photos"
    write_scenes(folder, 4)
    photos = resight.open(tmp_path / "c.resight")
    assert figures(photos.add(folder)) == (4, 0, 0, 0)
    assert figures(photos.add(folder)) == (0, 0, 4, 0)
    write_jpeg(folder / "scene_01.jpg", draw_scene(7))
    write_jpeg(folder / "scene_09.jpg", draw_scene(9))
    assert figures(photos.add(folder)) == (1, 1, 3, 0)
    assert len(photos) == 5
    assert photos.search(view)[0].id == "scene_01.jpg"


def test_a_change_that_keeps_the_size_is_seen_by_its_time(tmp_path: Path) -> None:
    file = write_jpeg(tmp_path / "a.jpg", draw_scene(0))
    photos = resight.open(tmp_path / "c.resight")
    photos.add(file)
    status = file.stat()
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert figures(photos.add(file)) == (0, 1, 0, 0)


def test_progress_counts_up_to_all_images(scenes: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    resight.open(tmp_path / "c.resight").add(scenes, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (12, 12)
    assert seen == sorted(seen)


def test_files_of_one_name_in_two_folders_are_two_images(tmp_path: Path) -> None:
    for name, seed in (("first", 1), ("second", 2)):
        (tmp_path / name).mkdir()
        write_jpeg(tmp_path / name / "a.jpg", draw_scene(seed))
    photos = resight.open(tmp_path / "c.resight")
    assert figures(photos.add(tmp_path / "first", tmp_path / "second")) == (2, 0, 0, 0)
    assert figures(photos.add(tmp_path / "second", tmp_path / "first")) == (0, 0, 2, 0)
    assert sorted(record.id for record in photos.records()) == ["a.jpg", "second/a.jpg"]
    assert photos.search(tmp_path / "second" / "a.jpg")[0].id == "second/a.jpg"


def test_a_third_folder_of_the_same_name_is_refused_before_anything_is_replaced(tmp_path: Path) -> None:
    for parent, seed in (("x", 1), ("y", 2), ("z", 3)):
        (tmp_path / parent / "photos").mkdir(parents=True)
        write_jpeg(tmp_path / parent / "photos" / "a.jpg", draw_scene(seed))
    photos = resight.open(tmp_path / "c.resight")
    photos.add(tmp_path / "x" / "photos", tmp_path / "y" / "photos")
    with pytest.raises(CollectionError, match="two files would both be called"):
        photos.add(tmp_path / "z" / "photos")
    assert {record.path.parent.parent.name for record in photos.records()} == {"x", "y"}


def test_parts_of_one_picture_are_entries_with_ids_and_labels_of_their_own(tmp_path: Path) -> None:
    wall = np.hstack([draw_scene(1), draw_scene(2), draw_scene(3)])
    write_jpeg(tmp_path / "wall.jpg", wall)
    rows = [
        {"id": f"part {number}", "path": "wall.jpg", "label": name, "box": [480 * number, 0, 480 * number + 480, 360]}
        for number, name in enumerate(["one", "two", "three"])
    ]
    manifest = tmp_path / "parts.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    photos = resight.open(tmp_path / "c.resight")
    assert figures(photos.add(manifest)) == (3, 0, 0, 0)
    best = photos.search(write_jpeg(tmp_path / "view.jpg", look_at(draw_scene(2))))[0]
    assert (best.id, best.path, best.attributes["label"]) == ("part 1", tmp_path / "wall.jpg", "two")
    x0, y0, x1, y1 = box_around()
    assert best.box is not None
    assert overlap(best.box, (x0 + 480, y0, x1 + 480, y1)) > 0.9  # in pixels of the whole picture
    assert [hit.id for hit in photos.search(tmp_path / "view.jpg", where=["label=three"])] == ["part 2"]


def test_an_id_may_hold_any_text(tmp_path: Path) -> None:
    ids = ["it's", 'a "quoted" one', "two\nlines", "图 🜨", "' OR 1=1 --", "%_", "a/../b", " "]
    files = [write_jpeg(tmp_path / f"{seed}.jpg", draw_scene(seed, 160, 120)) for seed in range(len(ids))]
    photos = resight.open(tmp_path / "c.resight")
    photos.add([resight.ImageRef(id, file) for id, file in zip(ids, files, strict=True)])
    assert [photos.search(file)[0].id for file in files] == ids
    assert photos.delete(ids[:4]) == 4
    assert sorted(hit.id for hit in photos.search(files[0])) == sorted(ids[4:])


def test_deleting_and_adding_again_gives_the_same_answers(own: Path, scenes: Path, view: Path) -> None:
    photos = resight.open(own)
    before = photos.search(view)
    assert photos.delete(["scene_07.jpg", "scene_07.jpg", "nobody"]) == 1
    assert "scene_07.jpg" not in [hit.id for hit in photos.search(view, k=20)]
    assert figures(photos.add(scenes)) == (1, 0, 11, 0)
    assert photos.search(view) == before


def test_indexes_are_derived_and_may_be_removed(own: Path, view: Path) -> None:
    before = resight.open(own).search(view)
    shutil.rmtree(own / "indexes")
    assert resight.open(own).search(view) == before
    assert len(list((own / "indexes").iterdir())) == 2  # one a branch that takes part in the shortlist


def test_another_recipe_may_change_the_search_but_not_the_encoding(own: Path, view: Path) -> None:
    plain = resight.open(own, load("sift_tokens", ["rerankers=[]"]))
    assert "inliers" not in plain.search(view)[0].stages
    with pytest.raises(SpaceMismatch) as caught:
        resight.open(own, "sift_vlad")
    assert "asmk(" in caught.value.expected
    assert "vlad(" in caught.value.actual


def test_a_collection_keeps_its_code_book(
    scenes: Path, view: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from resight.encode import codebook

    book = tmp_path / "words.npz"
    codebook.save(codebook.make(np.random.default_rng(0).random((16, 128), np.float32)), book)
    monkeypatch.chdir(tmp_path)
    recipe = load("sift", ["branches.0.descriptor.codebook=words.npz"])
    resight.open("c.resight", recipe).add(scenes / "scene_07.jpg")
    book.unlink()
    monkeypatch.chdir(scenes)  # a relative path means nothing here
    moved = shutil.move(tmp_path / "c.resight", tmp_path / "elsewhere.resight")
    assert resight.open(moved).search(view)[0].id == "scene_07.jpg"


def test_a_code_book_that_was_tampered_with_is_noticed(scenes: Path, view: Path, tmp_path: Path) -> None:
    from resight.encode import codebook

    rng = np.random.default_rng(0)
    book = tmp_path / "words.npz"
    codebook.save(codebook.make(rng.random((16, 128), np.float32)), book)
    recipe = load("sift", [f"branches.0.descriptor.codebook={book}"])
    resight.open(tmp_path / "c.resight", recipe).add(scenes / "scene_07.jpg")
    (kept,) = (tmp_path / "c.resight" / "files").iterdir()
    codebook.save(codebook.make(rng.random((16, 128), np.float32)), kept)
    for use in ("search", "add"):
        with pytest.raises(CollectionError, match="not the file that its name promises"):
            getattr(resight.open(tmp_path / "c.resight"), use)(view)
    kept.unlink()
    with pytest.raises(InputError, match="is not a code book"):
        resight.open(tmp_path / "c.resight").search(view)
    assert len(resight.open(tmp_path / "c.resight")) == 1


def test_what_a_kill_left_while_the_collection_was_made_is_no_obstacle(scenes: Path, tmp_path: Path) -> None:
    (tmp_path / "c.resight" / "images.lance" / "data").mkdir(parents=True)
    assert resight.open(tmp_path / "c.resight").add(scenes / "scene_00.jpg").added == 1


def test_an_unrelated_image_among_blank_ones_is_not_believed(scenes: Path, view: Path, tmp_path: Path) -> None:
    (tmp_path / "blank").mkdir()
    for shade in range(20):
        write_jpeg(tmp_path / "blank" / f"{shade:02}.jpg", np.full((200, 200, 3), 10 * shade, np.uint8))
    photos = resight.open(tmp_path / "c.resight")
    photos.add(tmp_path / "blank", scenes / "scene_00.jpg")
    assert photos.search(view)[0].probability < 0.5


def test_images_may_come_from_a_generator(scenes: Path, tmp_path: Path) -> None:
    refs = (resight.ImageRef(path.stem, path) for path in sorted(scenes.iterdir())[:2])
    assert resight.open(tmp_path / "c.resight").add(refs).added == 2


def test_one_folder_by_two_spellings_is_one_folder(scenes: Path, tmp_path: Path) -> None:
    photos = resight.open(tmp_path / "c.resight")
    photos.add(scenes)
    assert photos.add(scenes / ".." / scenes.name).unchanged == 12
    assert len(photos) == 12


def test_arguments_that_mean_nothing_are_refused(own: Path, view: Path) -> None:
    photos = resight.open(own)
    for wrong in ({"k": 0}, {"k": -1}, {"box": (1, 2, 3)}, {"near": (1, 2)}):
        with pytest.raises(InputError):
            photos.search(view, **wrong)
    with pytest.raises(InputError, match="cannot add"):
        photos.add([3])
    assert photos.delete("no such id") == 0


def test_a_description_of_another_format_or_none_is_refused(own: Path) -> None:
    text = (own / "collection.json").read_text()
    metadata.write_table(own, {**metadata.read_table(own, metadata.FILE), "format": 3})
    with pytest.raises(VersionMismatch, match="update resight"):
        resight.open(own)
    for damaged in ("", text[: len(text) // 2], "[]", "{}"):
        for name in ("collection.json", "collection.copy.json"):
            (own / name).write_text(damaged)
        with pytest.raises(CollectionError, match="cannot be read"):
            resight.open(own)


def test_a_damaged_description_comes_from_its_copy(own: Path, caplog: pytest.LogCaptureFixture) -> None:
    images = len(resight.open(own))
    (own / "collection.json").write_text("")
    assert len(resight.open(own, must_exist=True)) == images
    assert "its copy serves" in caplog.text


def test_a_second_writer_is_refused_while_searches_go_on(own: Path, scenes: Path, view: Path) -> None:
    photos = resight.open(own)
    with writer_lock(own):
        with pytest.raises(CollectionBusy):
            photos.add(scenes)
        with pytest.raises(CollectionBusy):
            photos.delete(["scene_00.jpg"])
        assert photos.search(view)[0].id == "scene_07.jpg"
    assert figures(photos.add(scenes)) == (0, 0, 12, 0)


def test_a_collection_that_is_open_sees_what_another_one_adds(own: Path, tmp_path: Path) -> None:
    reader, writer = resight.open(own), resight.open(own)
    query = write_jpeg(tmp_path / "new.jpg", draw_scene(50))
    assert (reader.search(query)[0].probability or 0) < 0.5
    writer.add(query)
    best = reader.search(query)[0]
    assert (best.id, (best.probability or 0) > 0.5) == ("new.jpg", True)
