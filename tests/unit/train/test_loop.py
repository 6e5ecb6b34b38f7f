"""The loop: the same with and without an interruption, and what stops it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from support.tiny_training import INPUT, QUICK, TinyNetwork, list_examples, write_classes

from resight.encode.networks import checkpoint_loader
from resight.errors import InputError, StorageError, TrainingError
from resight.train import checkpoints, losses
from resight.train.loading import ImageBatches
from resight.train.loop import BEST, LAST, Report, train
from resight.train.metric_logger import MetricLogger, read_metrics
from resight.train.train_config import Settings

SMALL = replace(QUICK, save_every=2, ema=0.9)  # 3 steps an epoch


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_classes(tmp_path_factory.mktemp("classes"), classes=4, each=6)


def run(images: Path, out: Path, settings: Settings = SMALL, stop: int | None = None, **options: object) -> Report:
    """A training; with `stop`, the process dies like one that is killed when it asks for that batch of epoch 1."""
    network = TinyNetwork()
    batches = ImageBatches(list_examples(images), None, settings, INPUT)
    if stop is not None:
        batches = DeadlyBatches(batches, stop)
    loss = losses.build("arcface", 4, 12)
    return train(network, loss, batches, settings, out, **options)


class DeadlyBatches:
    def __init__(self, batches: ImageBatches, stop: int) -> None:
        self._batches, self._stop = batches, stop
        self.steps, self.fingerprint, self.unreadable = batches.steps, batches.fingerprint, ()

    def read(self, epoch: int, first: int) -> Iterator[object]:
        for number, parts in enumerate(self._batches.read(epoch, first), first):
            if epoch == 1 and number == self._stop:
                os.kill(os.getpid(), signal.SIGKILL)
            yield parts


class Validated:
    unreadable = ("held/1.png",)

    def __init__(self, look: Callable[[torch.nn.Module], float]) -> None:
        self._look = look

    def __call__(self, network: torch.nn.Module) -> float:
        return self._look(network)


def read_losses(out: Path) -> list[tuple[int, float]]:
    return [(line["step"], line["loss"]) for line in read_metrics(out / "curves.jsonl")]


def test_a_run_that_is_killed_and_resumed_equals_one_that_is_not(images: Path, tmp_path: Path):
    run(images, tmp_path / "whole")
    script = f"import sys; sys.path[:0] = {sys.path!r}; from {__name__} import *; "
    script += f"run(Path({str(images)!r}), Path({str(tmp_path / 'killed')!r}), stop=2)"
    folders = f"{Path(__file__).parent}{os.pathsep}{Path(__file__).parents[2]}"
    killed = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": folders}, check=False)
    assert killed.returncode == -signal.SIGKILL
    step = checkpoints.load(tmp_path / "killed" / LAST)[0].step
    assert step == 4  # in the middle of the second epoch of three batches
    assert read_losses(tmp_path / "killed")[-1][0] == 5  # it had gone on from there
    run(images, tmp_path / "killed", resume=True)
    assert read_losses(tmp_path / "killed") == read_losses(tmp_path / "whole")
    (one, first), (two, second) = (checkpoints.load(tmp_path / name / LAST) for name in ("whole", "killed"))
    assert one == two
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(name.startswith("average.") for name in first) and any(name.startswith("optimizer.") for name in first)


def test_another_seed_gives_other_weights(images: Path, tmp_path: Path):
    run(images, tmp_path / "a")
    run(images, tmp_path / "b")
    run(images, tmp_path / "c", replace(SMALL, seed=1))
    assert read_losses(tmp_path / "a") == read_losses(tmp_path / "b") != read_losses(tmp_path / "c")


def test_a_loss_that_is_not_a_number_stops_it_and_leaves_the_last_checkpoint(images: Path, tmp_path: Path):
    class Poisoned(TinyNetwork):
        calls = 0

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return super().forward(images) * (float("nan") if self.calls == 5 else 1)

    batches = ImageBatches(list_examples(images), None, SMALL, INPUT)
    with pytest.raises(TrainingError) as caught:
        train(Poisoned(), losses.build("arcface", 4, 12), batches, SMALL, tmp_path)
    assert caught.value.problem == "the loss is not a number in epoch 2, batch 2"
    assert caught.value.actual.count(".png") == 8
    progress, tensors = checkpoints.load(tmp_path / LAST)
    assert progress.step == 4
    assert all(torch.isfinite(value.float()).all() for value in tensors.values())


def test_a_full_disk_keeps_the_last_checkpoint(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    save_file, calls = checkpoint_loader.save_file, []

    def fill_up(tensors: object, path: Path, metadata: object) -> None:
        calls.append(path)
        if len(calls) == 3:  # step 2, the best weights of epoch 1, and now the checkpoint of epoch 1
            Path(path).write_bytes(b"half")
            raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
        save_file(tensors, path, metadata=metadata)

    monkeypatch.setattr(checkpoint_loader, "save_file", fill_up)
    with pytest.raises(StorageError) as caught:
        run(images, tmp_path)
    assert "the last checkpoint is intact" in caught.value.problem and "No space left" in caught.value.actual
    assert checkpoints.load(tmp_path / LAST)[0].step == 2
    assert not list(tmp_path.glob("*.tmp"))


def test_it_stops_when_validation_gets_no_better_and_keeps_the_best_weights(images: Path, tmp_path: Path):
    values = iter([0.5, 0.7, 0.6, 0.65])
    kept: list[dict[str, torch.Tensor]] = []

    def look(network: torch.nn.Module) -> float:
        kept.append({name: value.clone() for name, value in network.state_dict().items()})
        return next(values)

    report = run(images, tmp_path, replace(QUICK, epochs=9, patience=2), validate=Validated(look))
    assert (report.epochs, report.best, report.best_epoch, report.stopped_early) == (4, 0.7, 1, True)
    best = checkpoints.load_weights(tmp_path / BEST)
    assert all(torch.equal(best[name], value) for name, value in kept[1].items())
    assert [line["validation"] for line in read_metrics(tmp_path / "curves.jsonl") if "validation" in line] == [
        0.5,
        0.7,
        0.6,
        0.65,
    ]


def test_a_validation_that_is_no_number_is_worse_than_any(images: Path, tmp_path: Path):
    values = iter([float("nan"), 0.2, float("nan"), 0.1])
    report = run(images, tmp_path, replace(QUICK, epochs=4), validate=Validated(lambda _: next(values)))
    assert (report.best, report.best_epoch) == (0.2, 1)
    assert all("NaN" not in line for line in (tmp_path / "curves.jsonl").read_text().splitlines())
    never = run(images, tmp_path / "never", replace(QUICK, epochs=1), validate=Validated(lambda _: float("nan")))
    assert (never.best, never.best_epoch) == (None, 0) and never.weights.is_file()


def test_an_epoch_is_saved_before_it_is_validated(images: Path, tmp_path: Path):
    def fail(_: torch.nn.Module) -> float:
        raise InputError("there is nothing to validate on")

    run(images, tmp_path / "whole", validate=Validated(lambda _: 0.5))
    with pytest.raises(InputError):
        run(images, tmp_path / "failed", validate=Validated(fail))
    assert checkpoints.load(tmp_path / "failed" / LAST)[0].step == 3
    report = run(images, tmp_path / "failed", resume=True, validate=Validated(lambda _: 0.5))
    assert report.unreadable_held_out == ("held/1.png",)
    (one, first), (two, second) = (checkpoints.load(tmp_path / name / LAST) for name in ("whole", "failed"))
    assert one == two and all(torch.equal(first[name], second[name]) for name in first)


def test_a_validation_whose_epoch_was_not_ended_is_cut_off_the_curves(tmp_path: Path):
    curves = MetricLogger(tmp_path)
    for step, epoch, values in ((1, 0, {"loss": 1.0}), (1, 0, {"validation": 0.1}), (2, 1, {"loss": 0.9}),
                                (2, 1, {"validation": 0.2})):  # fmt: skip
        curves.write(step, epoch, 0.0, **values)
    curves.close()
    MetricLogger(tmp_path, step=2, epoch=1).close()
    assert [line.get("validation") for line in read_metrics(tmp_path / "curves.jsonl")] == [None, 0.1, None]


def test_a_finished_run_that_is_resumed_does_nothing(images: Path, tmp_path: Path):
    first = run(images, tmp_path)
    again = run(images, tmp_path, resume=True)
    assert (again.steps, again.loss, first.steps) == (6, None, 6)


def test_another_setting_is_refused_when_resuming(images: Path, tmp_path: Path):
    run(images, tmp_path)
    with pytest.raises(InputError) as caught:
        run(images, tmp_path, replace(SMALL, batch=4), resume=True)
    assert (caught.value.expected, caught.value.actual) == ("batch = 8", "batch = 4")


def test_another_network_is_refused_when_resuming(images: Path, tmp_path: Path):
    run(images, tmp_path, about={"masks": (1, 2), "first weights": "random"})
    run(images, tmp_path, about={"masks": (1, 2), "first weights": "random"}, resume=True)
    with pytest.raises(InputError) as caught:
        run(images, tmp_path, about={"masks": (1, 2), "first weights": "abc"}, resume=True)
    assert caught.value.expected == "encoder.first weights = random"
    assert caught.value.actual == "encoder.first weights = abc"


def test_weights_of_another_shape_are_refused_when_resuming(images: Path, tmp_path: Path):
    run(images, tmp_path)
    batches = ImageBatches(list_examples(images), None, SMALL, INPUT)
    with pytest.raises(InputError, match="another network"):
        train(TinyNetwork(norm=True), losses.build("arcface", 4, 12), batches, SMALL, tmp_path, resume=True)


def test_after_a_loss_that_is_not_a_number_what_is_advised_can_be_done(images: Path, tmp_path: Path):
    class Fragile(TinyNetwork):
        calls = 0

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return super().forward(images) * (float("nan") if self.calls == 5 else 1)

    def go_on(settings: Settings, network: TinyNetwork, **options: object) -> Report:
        batches = ImageBatches(list_examples(images), None, settings, INPUT)
        return train(network, losses.build("arcface", 4, 12), batches, settings, tmp_path, **options)

    with pytest.raises(TrainingError, match="not a number") as caught:
        go_on(SMALL, Fragile())
    assert "continue with --resume" in caught.value.fix and "another --out" in caught.value.fix
    changed = replace(SMALL, rate=0.01, clip=1.0, precision="bf16")
    report = go_on(changed, TinyNetwork(), resume=True)
    notes = (
        "rate = 0.01 after step 4, 0.05 before",
        "clip = 1.0 after step 4, None before",
        "precision = bf16 after step 4, fp32 before",
    )
    assert report.steps == 6 and report.changes == notes
    assert go_on(changed, TinyNetwork(), resume=True).changes == notes


def test_images_that_cannot_be_read_are_reported_after_resuming_too(tmp_path: Path):
    folder = write_classes(tmp_path / "classes", classes=4, each=6)
    (folder / "c2" / "1.png").write_bytes(b"no image")
    report = run(folder, tmp_path / "out", replace(SMALL, unreadable=0.1))
    assert report.unreadable == ("c2/1.png",) and report.steps == 6
    again = run(folder, tmp_path / "out", replace(SMALL, unreadable=0.1), resume=True)
    assert again.unreadable == ("c2/1.png",)


def test_parts_of_a_batch_add_up_to_the_batch(images: Path, tmp_path: Path):
    found = []
    for accumulate in (1, 4):
        settings = replace(QUICK, accumulate=accumulate, momentum=0)
        network = TinyNetwork(dropout=0)
        batches = ImageBatches(list_examples(images), None, settings, INPUT)
        train(network, losses.build("arcface", 4, 12), batches, settings, tmp_path / str(accumulate))
        found.append(network.state_dict())
    assert all(torch.allclose(found[0][name], found[1][name], atol=1e-6) for name in found[0])


@pytest.mark.parametrize(
    ("stage", "learns"),
    [("all", {"trunk", "middle", "pool"}), ("backbone", {"trunk", "pool"}), ("head", {"middle", "pool"})],
)
def test_a_stage_changes_its_own_parts_alone(stage: str, learns: set[str], images: Path, tmp_path: Path):
    network, before = TinyNetwork(norm=True), TinyNetwork(norm=True).state_dict()
    batches = ImageBatches(list_examples(images), None, QUICK, INPUT)
    train(network, losses.build("arcface", 4, 12), batches, QUICK, tmp_path, stage=stage)
    changed = {
        name.partition(".")[0] for name, value in network.state_dict().items() if not torch.equal(value, before[name])
    }
    assert changed == learns


def test_frozen_norms_keep_their_statistics(images: Path, tmp_path: Path):
    for mode, moves in (("frozen", False), ("train", True)):
        settings = replace(QUICK, batch_norm=mode)
        network = TinyNetwork(norm=True)
        batches = ImageBatches(list_examples(images), None, settings, INPUT)
        train(network, losses.build("arcface", 4, 12), batches, settings, tmp_path / mode)
        assert bool(network.trunk[1].running_mean.any()) == moves


def test_half_precision_trains(images: Path, tmp_path: Path):
    report = run(images, tmp_path, replace(QUICK, precision="bf16", clip=1.0, optimizer="adamw", rate=0.001))
    assert report.loss is not None and report.steps == 6


@pytest.mark.parametrize("name", ["arcface", "triplet"])
def test_fp16_moves_the_weights(name: str, images: Path, tmp_path: Path):
    """Of a distance of 0, as an image has to itself or to a centre that it lies on, the root has no gradient there."""
    settings = replace(QUICK, precision="fp16", epochs=4, together=2)
    network, loss = TinyNetwork(), losses.build(name, 4, 12)
    if name == "arcface":
        with torch.no_grad():
            network.pool[2].weight.zero_()
            loss.centres.copy_(network.pool[2].bias.expand(4, 12))
    start = network.pool[2].weight.clone()
    batches = ImageBatches(list_examples(images), None, settings, INPUT)
    report = train(network, loss, batches, settings, tmp_path)
    assert report.skipped < 8 and report.steps == 12  # some, until the scale has been found
    assert (network.pool[2].weight - start).abs().max() > 0.001


def test_fp16_that_never_fits_is_given_up(images: Path, tmp_path: Path):
    class Enormous(TinyNetwork):
        """Its gradients overflow at any scale."""

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            rows = super().forward(images)
            return rows + (rows * 0).sqrt()

    settings = replace(QUICK, precision="fp16", epochs=7)
    batches = ImageBatches(list_examples(images), None, settings, INPUT)
    with pytest.raises(TrainingError, match="20 steps in a row overflowed, the last in epoch 7, batch 2"):
        train(Enormous(), losses.build("arcface", 4, 12), batches, settings, tmp_path)
    assert checkpoints.load(tmp_path / LAST)[0].skipped == 18


def test_fp16_goes_on_with_the_scale_that_it_had(images: Path, tmp_path: Path):
    settings, values = replace(QUICK, precision="fp16", epochs=4), iter([0.1, 0.2])
    run(images, tmp_path / "whole", settings, validate=Validated(lambda _: 0.1))
    with pytest.raises(StopIteration):
        run(images, tmp_path / "stopped", settings, validate=Validated(lambda _: next(values)))
    run(images, tmp_path / "stopped", settings, validate=Validated(lambda _: 0.1), resume=True)
    one, two = (checkpoints.load(tmp_path / name / LAST)[0] for name in ("whole", "stopped"))
    assert one.growth == two.growth and one.growth > 3
    assert (one.scale, one.skipped) == (two.scale, two.skipped)


def test_curves_are_whole_lines_of_json(images: Path, tmp_path: Path):
    run(images, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "curves.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert lines[0]["rate"] == pytest.approx(0.05 / 3)  # the first of three steps of warm-up
    assert set(lines[0]) == {"step", "epoch", "loss", "rate", "seconds"}
    assert any((tmp_path / "tensorboard").iterdir())
