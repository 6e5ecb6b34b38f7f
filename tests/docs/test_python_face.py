"""A notebook of sixty lines walks the whole Python face in a kernel of Jupyter, and shows what it finds."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

SECONDS = 180  # for one cell
CELLS = (
    """
import io
import numpy as np
import resight
from PIL import Image

photos = resight.open("own.resight")
report = photos.add("photos/")
photos
""",
    """
assert (report.added, len(photos)) == (10, 10)
assert "castle.png" in photos and list(photos)[0] in photos
photos["castle.png"].size, resight.__version__
""",
    """
answer = photos.ask("query.jpg", k=4)
print(answer.verdict)
answer
""",
    """
hit = answer[0]
assert hit.id == "eiffel-2.png" and hit.id in answer
hit
""",
    "hit.explain()",
    "answer.show(3)",
    "answer.explain(hit)",
    """
frame = answer.to_frame()
assert list(frame["id"])[0] == "eiffel-2.png"
frame
""",
    """
query = Image.open("query.jpg")
forms = [query, np.asarray(query), open("query.jpg", "rb").read(), io.BytesIO(open("query.jpg", "rb").read())]
found = photos.search([*forms, "castle.png", photos.encode_query("query.jpg")], k=1)
[hits[0].id for hits in found]
""",
    """
by_id = photos.search("castle.png", k=2, progress=False)
tower = photos.search("query.jpg", k=1, box=(0, 0, 300, 300))
try:
    photos.search(np.full((4, 4), 9.0))
except resight.ResightError as error:
    print(error)
""",
    """
encoder = resight.load_encoder("tokens")
vectors = encoder.encode(["query.jpg", "photos/eiffel-2.png", "photos/castle.png"])
assert encoder.maxsim("query.jpg", vectors)[0, 1] > encoder.maxsim("query.jpg", vectors)[0, 2]
vectors.pooled.shape, encoder.similarity(vectors, vectors).shape
""",
    """
mine = resight.wrap_encoder(lambda images: np.stack([np.asarray(i, np.float32).mean((0, 1)) for i in images]),
                            name="colour", version="1")
colours = resight.open("colours.resight", encoder=mine)
colours.add("photos/", progress=False)
works = resight.open("works.resight", encoder=resight.own_vectors("mine", version="1", dimensions=8))
works.add_vectors(["a", "b"], np.eye(2, 8))
works.search_vectors(np.eye(2, 8)[1], k=1)[0].id, colours.search("query.jpg", k=1)[0].located_by
""",
    """
evaluation = resight.evaluate(photos, {"query.jpg": ["eiffel-2.png"]}, metrics=["ap", "recall@1"])
print(evaluation.to_latex().count("tabular"), evaluation.to_frame()["ap"][0])
evaluation
""",
    """
judged = resight.judge({"q": ["b", "a"]}, {"q": ["a"]}, ["ap"])
judged
""",
    """
duplicates = resight.dedup(photos, kinds=["copy"])
planned = resight.plan("photos", recipe="sift")
alike = resight.lookalikes(photos, "castle.png", k=2)
len(duplicates), planned.here.images, len(alike.to_frame())
""",
    """
photos.delete("castle.png")
photos.add(["photos/castle.png"], progress=lambda done, total: print(done, "of", total))
""",
)


@pytest.fixture(scope="module")
def outputs(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The output of each cell: MIME type → content; what was printed is "stdout"."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    folder = tmp_path_factory.mktemp("notebook")
    shutil.copytree(photo_folder / "photos", folder / "photos")
    shutil.copy(photo_folder / "query.jpg", folder)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS])
    client = nbclient.NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", extra_arguments=["--quiet"])
    client.resources = {"metadata": {"path": str(folder)}}
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    client.execute(env={**os.environ, **threads})
    return [_merge(cell.outputs) for cell in notebook.cells]


def _merge(outputs: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for output in outputs:
        for kind, content in (output.get("data") or {f"{output.get('name')}": output.get("text", "")}).items():
            found[kind] = found.get(kind, "") + content
    return found


def test_the_notebook_is_about_sixty_lines_long() -> None:
    assert 55 <= sum(len(cell.strip().splitlines()) for cell in CELLS) <= 75


def test_collections_answers_hits_and_evidence_show_their_pictures(outputs: list[dict[str, Any]]) -> None:
    collection, answer, hit, evidence = (outputs[number]["text/html"] for number in (0, 2, 3, 6))
    assert collection.count("<img ") == 8 and "own.resight: 10 images" in collection
    assert answer.count("<img ") == 5 and "eiffel-2.png" in answer
    assert hit.count("<img ") == 1
    assert evidence.count("<img ") >= 1 and "matching points agree" in evidence


def test_explanations_and_sheets_are_pictures(outputs: list[dict[str, Any]]) -> None:
    assert outputs[4].get("image/png") and outputs[5].get("image/png")


def test_the_verdict_and_errors_are_words(outputs: list[dict[str, Any]]) -> None:
    assert outputs[2]["stdout"] == "1 of 4 answers is very likely the same\n"
    assert "expected:" in outputs[9]["stdout"] and "fix:" in outputs[9]["stdout"]


def test_every_form_finds_the_same(outputs: list[dict[str, Any]]) -> None:
    shown = re.findall(r"[\w-]+\.png", outputs[8]["text/plain"])
    assert shown == [*["eiffel-2.png"] * 4, "castle.png", "eiffel-2.png"]


def test_work_that_takes_long_shows_a_bar_unless_it_is_silenced(outputs: list[dict[str, Any]]) -> None:
    assert "adding: 10 in" in outputs[0]["text/html"]  # the bar has become a line
    assert "encoding with tokens" in outputs[10]["text/html"]
    assert "adding" not in outputs[11].get("text/html", "")
    assert outputs[15]["stdout"].endswith("1 of 1\n")


def test_frames_and_results_are_tables(outputs: list[dict[str, Any]]) -> None:
    for number in (7, 12, 13):
        assert "<table" in outputs[number]["text/html"]
    assert outputs[12]["stdout"].split() == ["2", "1.0"]
    assert outputs[14]["text/plain"].endswith("(0, 10, 2)")  # after the bar


def test_the_kernel_wrote_no_warning(outputs: list[dict[str, Any]]) -> None:
    assert [one["stderr"] for one in outputs if "stderr" in one] == []
