"""Rankings that are recorded while recipes are measured, and the files that they become."""

from pathlib import Path

import numpy as np

from resight.evaluate.trec import DEPTH, Recorder, open_run
from resight.types import Recipe


def test_one_recipe_makes_the_file_that_is_named(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.add(Recipe("walls", ()), "q1", ["b", "a"], np.array([0.75, 0.5], np.float32))
    recorder.add(Recipe("walls", ()), "q2", ["a"], np.array([0.25], np.float32))
    place = tmp_path / "deep" / "walls.txt"
    assert recorder.write(place) == [place]
    assert place.read_text().splitlines()[0].split() == ["q1", "Q0", "b", "1", "0.75", "walls"]
    assert [(query, list(ids)) for query, ids, _ in open_run(place)] == [("q1", ["b", "a"]), ("q2", ["a"])]


def test_several_recipes_make_a_file_each_called_after_them(tmp_path: Path) -> None:
    recorder = Recorder()
    for name in ("zoo: a k=2", "zoo: b"):
        recorder.add(Recipe(name, ()), "q", [name[5]], np.ones(1, np.float32))
    assert recorder.write(tmp_path) == [tmp_path / "zoo_a_k_2.run", tmp_path / "zoo_b.run"]
    assert "zoo_b" in (tmp_path / "zoo_b.run").read_text()


def test_answers_beyond_the_depth_are_left_out(tmp_path: Path) -> None:
    recorder = Recorder()
    names = [f"i{number}" for number in range(DEPTH + 5)]
    recorder.add(Recipe("long", ()), "q", names, np.linspace(1, 0, DEPTH + 5).astype(np.float32))
    (place,) = recorder.write(tmp_path / "long.run")
    assert len(place.read_text().splitlines()) == DEPTH
