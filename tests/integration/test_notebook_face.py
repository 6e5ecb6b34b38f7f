"""What a collection, an answer and a hit show in a notebook, and the pictures that scripts get."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import resight
from resight.apps import terminal
from resight.errors import CollectionError, InputError


@pytest.fixture(scope="module")
def photos(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> resight.Collection:
    opened = resight.open(tmp_path_factory.mktemp("notebook") / "c.resight", "sift")
    opened.add(scenes, progress=False)
    return opened


def test_a_collection_is_browsed_like_a_dictionary_of_records(photos: resight.Collection) -> None:
    ids = list(photos)
    assert len(ids) == len(photos) and ids[0] in photos
    assert "scene_99.jpg" not in photos and 7 not in photos
    assert photos["scene_03.jpg"].path.name == "scene_03.jpg"
    with pytest.raises(CollectionError) as caught:
        photos["scene_3.jpg"]
    assert "'scene_03.jpg'" in caught.value.fix
    assert f"{len(photos):,} images" in repr(photos)


def test_an_answer_is_a_sequence_of_its_hits_with_a_verdict(photos: resight.Collection, view: Path) -> None:
    answer = photos.ask(view, k=3)
    assert (len(answer), answer[0], list(answer)) == (3, answer.hits[0], list(answer.hits))
    assert "scene_07.jpg" in answer and answer[1] in answer and "scene_99.jpg" not in answer
    assert answer.verdict == "1 of 3 answers is very likely the same"
    assert answer.searched == len(photos)


def test_a_frame_has_a_row_per_hit_and_a_column_per_attribute(photos: resight.Collection, view: Path) -> None:
    pytest.importorskip("pandas")
    answer = photos.ask(view, k=3)
    frame = answer.to_frame()
    assert list(frame["rank"]) == [1, 2, 3] and list(frame["id"]) == [hit.id for hit in answer]
    assert [frame[side][0] for side in ("x0", "y0", "x1", "y1")] == list(answer[0].box or ())
    hit = resight.Hit("a", Path("a.jpg"), 1.0, None, attributes={"score": 5, "year": 1900})
    from resight.collection.hits import Hits

    assert list(Hits([hit]).to_frame().columns)[-2:] == ["attribute_score", "year"]


@pytest.mark.parametrize(
    "hold",
    [
        Path,
        Image.open,
        lambda path: path.read_bytes(),
        lambda path: io.BytesIO(path.read_bytes()),
        lambda path: np.asarray(Image.open(path)),
    ],
)
def test_whatever_was_searched_for_is_drawn_beside_its_hit(photos: resight.Collection, view: Path, hold: Any) -> None:
    hit = photos.search(hold(view), k=1)[0]
    drawn = np.asarray(hit.explain())
    with Image.open(view) as query:
        scale = drawn.shape[0] / query.height
        left = np.asarray(query.resize((round(query.width * scale), drawn.shape[0])), np.int16)
    error = np.abs(drawn[:, : left.shape[1]].astype(np.int16) - left).mean(axis=2)
    assert np.median(error) < 4  # lines and dots cover a part
    assert drawn.shape[1] > 1.5 * left.shape[1]


def test_a_stored_image_an_encoded_query_and_a_batch_of_ask_are_drawn_too(
    photos: resight.Collection, view: Path
) -> None:
    for answer in (photos.ask("scene_03.jpg"), photos.ask(photos.encode_query(view)), photos.ask([view])[0]):
        assert answer.show(2).size == (3 * 252 + 12, 240 + 2 * 18 + 24)  # three tiles in one row
        assert answer[0].explain().width > 300


def test_hits_of_a_batch_of_search_say_how_to_get_an_explanation(photos: resight.Collection, view: Path) -> None:
    hit = photos.search([view], k=1)[0][0]
    assert hit._repr_html_() is None
    with pytest.raises(InputError) as caught:
        hit.explain()
    assert "collection.ask" in caught.value.fix


def test_the_pages_hold_pictures_and_what_is_known(photos: resight.Collection, view: Path) -> None:
    answer = photos.ask(view, k=3)
    page = answer._repr_html_()
    assert page.count("<img ") == 4 and answer.verdict in page and "scene_07.jpg" in page
    assert photos._repr_html_().count("<img ") == 8
    hit = answer[0]._repr_html_() or ""
    assert hit.count("<img ") == 1 and "scene_07.jpg: &gt;99%" in hit
    evidence = answer.explain(answer[0])
    assert "matching points agree" in (evidence._repr_html_() or "")
    assert photos.search(view, k=2)._repr_html_().count("<img ") == 2


def test_a_file_that_is_gone_leaves_a_page_without_its_picture(scenes: Path, tmp_path: Path) -> None:
    query = tmp_path / "query.jpg"
    query.write_bytes((scenes / "scene_01.jpg").read_bytes())
    image = tmp_path / "images" / "one.jpg"
    image.parent.mkdir()
    image.write_bytes(query.read_bytes())
    photos = resight.open(tmp_path / "c.resight", "sift")
    photos.add(image.parent)
    answer = photos.ask(query)
    image.unlink()
    assert answer._repr_html_().count("no picture") == 1
    assert "there is no such file" in (answer.explain(answer[0])._repr_html_() or "")
    with pytest.raises(resight.ResightError, match="there is no such file"):
        answer.show()


def test_json_of_the_command_has_no_drawer(photos: resight.Collection, view: Path) -> None:
    assert "drawer" not in terminal.plain(photos.search(view, k=1)[0])


def test_progress_is_given_to_a_function_and_false_silences(photos: resight.Collection, view: Path) -> None:
    seen: list[tuple[int, int]] = []
    photos.search([view, view], k=1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]
    assert photos.search(iter([view]), k=1, progress=False)
