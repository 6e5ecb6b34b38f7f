"""`resight train` from images on disk to a network that search uses."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg
from support.tiny_training import INPUT, QUICK, TinyNetwork, list_examples, write_classes

import resight
from resight.errors import TrainingError
from resight.tasks.train import name_out
from resight.train import losses
from resight.train.checkpoints import load_weights
from resight.train.distributed import PATIENCE, Team, launch
from resight.train.loading import ImageBatches
from resight.train.loop import BEST, train

KINDS = (("frozen", "arcface", "frozen"), ("synced", "arcface", "synced"), ("pairs", "supcon", "frozen"))
RECIPE = """
name = "tiny"
data = { name = "folder", labels = true }

[[branches]]
encoder = { name = "cider", backbone = "test_resnet", dimensions = 32, size = 64, fit = "keep" }
descriptor = { name = "pooled", pooling = "head" }

[train]
name = "network"
epochs = 20
batch = 8
rate = 0.003
optimizer = "adamw"
warmup = 1
size = 64
held_out = 0
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight classes; one image of each is wider than the others."""
    folder = write_classes(tmp_path_factory.mktemp("photos"), classes=8, each=4, shape=(64, 64))
    for path in sorted(folder.rglob("3.png")):
        with Image.open(path) as image:
            image.resize((96, 64)).save(path)
    return folder


@pytest.fixture(scope="module")
def trained(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    (out / "recipe_given.toml").write_text(RECIPE)
    ran = run("train", out / "recipe_given.toml", "--data", photos, "--out", out / "run", "--json")
    assert (ran.answer["classes"], ran.answer["held_out_classes"], ran.answer["images"]) == (8, 0, 32)
    return out / "run"


def test_it_overfits_eight_classes_to_the_last_image(photos: Path, trained: Path, tmp_path: Path):
    """By the trained network in a collection, all others of its class come before any other image, for every image."""
    ran = run("index", photos, "--into", tmp_path / "photos.resight", "--recipe", trained / "recipe.toml", "--json")
    assert ran.code == 0, ran.err
    opened = resight.open(tmp_path / "photos.resight")
    for path in sorted(photos.rglob("*.png")):
        assert {hit.id.split("/")[0] for hit in opened.search(path, k=4)} == {path.parent.name}


def test_the_loss_falls_and_a_training_is_not_overwritten(photos: Path, trained: Path):
    lines = [json.loads(line) for line in (trained / "all" / "curves.jsonl").read_text().splitlines()]
    found = [line["loss"] for line in lines if "loss" in line]
    assert len(found) == 80 and np.mean(found[-4:]) < 0.2 * found[0]
    again = run("train", trained.parent / "recipe_given.toml", "--data", photos, "--out", trained)
    assert again.code == 2 and "--resume" in again.err


def test_another_network_is_refused_when_it_is_resumed(photos: Path, trained: Path):
    words = ("train", trained.parent / "recipe_given.toml", "--data", photos, "--out", trained, "--resume")
    ran = run(*words, "--set", "branches.0.encoder.background=0.5")
    assert ran.code == 2 and "expected: encoder.background = 0.1" in ran.err


def test_fine_tuning_trains_the_backbone_and_then_the_head(photos: Path, tmp_path: Path):
    recipe = tmp_path / "ft.toml"
    recipe.write_text(
        RECIPE.replace("epochs = 20", 'epochs = 1\nstages = ["backbone", "head"]').replace(
            "held_out = 0", "held_out = 0.25"
        )
    )
    report = run("train", recipe, "--data", photos, "--out", tmp_path / "out", "--json").answer
    assert list(report["stages"]) == ["backbone", "head"]
    assert (report["classes"], report["held_out_classes"], report["held_out_images"]) == (6, 2, 8)
    assert all(0 <= stage["best"] <= 1 for stage in report["stages"].values())
    assert (tmp_path / "out" / "backbone" / "best.safetensors").is_file()


def test_a_recipe_without_training_is_refused(photos: Path, tmp_path: Path):
    ran = run("train", "sift", "--data", photos, "--out", tmp_path)
    assert ran.code == 2 and "has no training settings" in ran.err


def test_an_audit_is_obeyed(photos: Path, tmp_path: Path):
    (tmp_path / "removal.csv").write_text("class,name,images,why,evaluation\nc3,,4,matches,q1\n")
    (tmp_path / "mine.toml").write_text(RECIPE.replace("epochs = 20", "epochs = 1"))
    words = ("train", tmp_path / "mine.toml", "--data", photos, "--out", tmp_path / "out", "--audit", tmp_path)
    refused = run(*words)
    assert refused.code == 2 and "actual: c3 (by " in refused.err and not (tmp_path / "out" / "all").exists()
    report = run(*words, "--set", "train.overlap=leave_out", "--json").answer
    assert report["classes"] == 7
    assert report["notes"] == ["4 images of classes that overlap with the evaluation set left out"]


def test_an_audit_of_folders_in_folders_is_obeyed(tmp_path: Path):
    """oxford/tower is in the evaluation set; paris/tower is another class and is not."""
    root, evaluation = tmp_path / "photos", tmp_path / "evaluation"
    for number, name in enumerate(("oxford/tower", "paris/tower")):
        (root / name).mkdir(parents=True)
        write_jpeg(root / name / "whole.jpg", draw_scene(number))
        write_jpeg(root / name / "near.jpg", draw_scene(number)[40:, 40:])
    evaluation.mkdir()
    write_jpeg(evaluation / "view.jpg", look_at(draw_scene(0)))
    (tmp_path / "mine.toml").write_text(RECIPE)
    assert run("audit", root, evaluation, "--out", tmp_path / "audit", "--encoder", "sift").code == 0
    words = ("train", tmp_path / "mine.toml", "--data", root, "--out", tmp_path / "out")
    refused = run(*words, "--audit", tmp_path / "audit")
    assert refused.code == 2 and "actual: oxford/tower (by " in refused.err


def test_a_folder_with_too_few_things_keeps_the_encoder_as_it_is(photos: Path):
    """Nobody has said where the result goes: beside the photos."""
    report = run("train", "--folder", photos, "--encoder", "sift_vlad", "--json").answer
    assert not report["kept"] and "Too few objects" in report["verdict"]
    assert report["recipe"] == f"{photos}.trained/recipe.toml" and Path(report["recipe"]).is_file()


def test_the_folder_of_the_result_has_a_name_wherever_the_photos_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert name_out(Path("a/photos/")) == Path("a/photos.trained")
    assert name_out(Path()) == tmp_path.with_name(f"{tmp_path.name}.trained")
    assert name_out(Path("s3://bucket/photos")) == Path("photos.trained")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--folder", "p", "--resume", "--data", "d"), "--data and --resume cannot be given with --folder"),
        (
            ("--folder", "p", "--audit", "a", "--processes", "1"),
            "--audit and --processes cannot be given with --folder",
        ),
        (("sift", "--data", "d", "--out", "x", "--pairs", "p"), "--pairs cannot be given with a recipe"),
        (("sift", "--encoder", "sift", "--minutes", "2"), "--preset and --minutes cannot be given with a recipe"),
    ],
)
def test_options_of_the_other_way_to_train_are_refused(words: tuple[str, ...], problem: str):
    ran = run("train", *words)
    assert ran.code == 2 and problem in ran.err


@pytest.mark.parametrize("words", [("--out", "x"), ("sift", "--out", "x"), ("sift", "--folder", "p", "--out", "x")])
def test_it_is_said_when_it_is_not_clear_what_to_train(words: tuple[str, ...]):
    ran = run("train", *words)
    assert ran.code == 2 and "it is not clear what to train" in ran.err


def test_an_unreadable_image_is_replaced_and_listed(tmp_path: Path):
    folder = write_classes(tmp_path / "classes", classes=2, each=8)
    (folder / "c0" / "3.png").write_bytes(b"\x89PNG not at all")
    settings = replace(QUICK, unreadable=0.1)
    batches = ImageBatches(list_examples(folder), None, settings, INPUT)
    parts = [part for parts in batches.read(0, 0) for part in parts]
    assert [len(part.ids) for part in parts] == [8, 8]
    assert batches.unreadable == ("c0/3.png",)
    assert "c0/3.png" not in [id for part in parts for id in part.ids]
    labels = {id: int(label) for part in parts for id, label in zip(part.ids, part.labels, strict=True)}
    assert all(label == int(id[1]) for id, label in labels.items())  # what stands in for it has its own label


def test_too_many_unreadable_images_end_it(tmp_path: Path):
    folder = write_classes(tmp_path / "classes", classes=2, each=8)
    for number in range(3):
        (folder / "c1" / f"{number}.png").write_bytes(b"")
    batches = ImageBatches(list_examples(folder), None, replace(QUICK, unreadable=0.1), INPUT)
    with pytest.raises(TrainingError) as caught:
        list(batches.read(0, 0))
    assert caught.value.problem == "3 of 16 images cannot be read" and caught.value.expected.startswith("2 at most")


def test_reading_does_not_depend_on_where_it_begins_or_on_the_threads(tmp_path: Path):
    folder = write_classes(tmp_path / "classes", classes=3, each=8)
    one = ImageBatches(list_examples(folder), None, replace(QUICK, workers=1), INPUT)
    two = ImageBatches(list_examples(folder), None, replace(QUICK, workers=4), INPUT)
    whole, rest = list(one.read(2, 0)), list(two.read(2, 1))
    assert len(whole) == 3 and len(rest) == 2
    for before, after in zip(whole[1:], rest, strict=True):
        assert before[0].ids == after[0].ids and torch.equal(before[0].images, after[0].images)


def share_training(team: Team, folder: Path, out: Path) -> None:
    """What a process does: one training for each way to treat batch normalisation, and one for each kind of loss."""
    for name, loss, norm in (
        ("frozen", "arcface", "frozen"),
        ("synced", "arcface", "synced"),
        ("pairs", "supcon", "frozen"),
    ):
        settings = replace(QUICK, batch_norm=norm, together=2, momentum=0.5, accumulate=2 if name == "frozen" else 1)
        network = TinyNetwork(norm=True, dropout=0)
        if name == "frozen":  # as backbones have parameters that nothing depends on
            network.register_parameter("spare", torch.nn.Parameter(torch.ones(2)))
        batches = ImageBatches(list_examples(folder), None, settings, INPUT, team)
        train(network, losses.build(loss, 4, 12), batches, settings, out / name, team=team)


def test_two_processes_equal_one_with_the_same_batch(tmp_path: Path):
    """Without dropout, which each process draws for itself. `batch_norm = "train"` is not among them: each process
    then normalises by its own half of the batch, and differs."""
    folder = write_classes(tmp_path / "classes", classes=4, each=6)
    share_training(Team(), folder, tmp_path / "one")
    launch(2, share_training, (folder, tmp_path / "two"))
    start = TinyNetwork(norm=True, dropout=0).state_dict()
    for name, _, _ in KINDS:
        one, two = (load_weights(tmp_path / kind / name / BEST) for kind in ("one", "two"))
        assert not torch.allclose(one["pool.2.weight"], start["pool.2.weight"], atol=1e-3)
        for key in one:
            assert torch.allclose(one[key].float(), two[key].float(), atol=1e-5), (name, key)


def test_processes_wait_while_one_of_them_validates():
    assert timedelta(hours=6) <= PATIENCE


def fail(team: Team) -> None:
    if team.rank == 1:
        raise TrainingError("the loss is not a number", actual="images a, b")
    team.agree(False)


def test_what_goes_wrong_in_a_process_is_told_as_it_was_there():
    with pytest.raises(TrainingError) as caught:
        launch(2, fail, ())
    assert (caught.value.problem, caught.value.actual) == ("the loss is not a number", "images a, b")
