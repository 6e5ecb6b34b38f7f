import base64
import hashlib
import io
import itertools
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from PIL import Image

from resight.explain.draw import shrink
from resight.explain.search_page import HitView, QueryView, Section, render, render_many
from resight.types import Evidence, Hit, Match, TokenMatches

HOSTILE = '"><script>alert(1)</script>'


def query(name: str = "query.jpg", height: int = 60, width: int = 80, box=None) -> QueryView:
    return QueryView(name, np.full((height, width, 3), 90, np.uint8), (800, 600), box)


def view(
    name: str, probability: float, *, box=None, points: int = 0, heat: bool = False, tokens=None, **more
) -> HitView:
    match = Match("q", name, points, np.eye(3), np.full((points, 4), 30, np.float32), tentative=99) if points else None
    warmth = np.eye(3, dtype=np.float32) if heat else None
    evidence = Evidence("q", name, match=match, heat=warmth, query_heat=warmth, tokens=tokens)
    hit = Hit(name, Path("photos") / f"{name}.jpg", 0.5, probability, box=box, **more)
    return HitView(hit, np.full((60, 80, 3), 140, np.uint8), (800, 600), evidence)


class Outline(HTMLParser):
    """Tags in order, with the text that directly follows each."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and data.strip():
            self.texts.append((self.tags[-1][0], data.strip()))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def said(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


def test_answers_stand_in_rank_order():
    outline = Outline(render(query(), [view("b", 0.9), view("a", 0.95), view("c", 0.1)]))
    assert outline.said("h3") == ["b", "a", "c"]


def test_text_of_users_cannot_become_markup():
    hit = view(HOSTILE, 0.9, points=3, heat=True, attributes={HOSTILE: HOSTILE}, stages={HOSTILE: 1.0})
    page = render(query(HOSTILE), [hit], HOSTILE, {HOSTILE: HOSTILE}, {HOSTILE: 0.1})
    assert "<script>alert" not in page
    assert len(Outline(page).all("script")) == 1


def test_the_page_refers_to_nothing_outside_itself():
    outline = Outline(render(query(), [view("a", 0.9, points=3, heat=True)]))
    sources = [
        value or "" for _, attributes in outline.tags for name, value in attributes.items() if name in ("src", "href")
    ]
    assert len(sources) > 3
    assert all(source.startswith(("data:", "#")) for source in sources)


def test_the_policy_admits_exactly_the_pages_own_style_and_script():
    page = render(query(), [view("a", 0.9)])
    policy = next(m["content"] for m in Outline(page).all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    for tag in ("style", "script"):
        text = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "unsafe-inline" not in policy
    assert not re.search(r"<[^>]+\sstyle=", page), "the policy would block it"


def test_a_box_is_an_overlay_in_the_coordinates_of_the_original():
    page = render(query(), [view("a", 0.9, box=(100, 150, 400, 450))])
    assert 'viewBox="0 0 800 600"' in page
    assert '<rect class="edge" x="100.0" y="150.0" width="300.0" height="300.0"/>' in page


def test_a_box_that_leaves_its_image_is_cut_at_the_edge():
    page = render(query(), [view("a", 0.9, box=(-50, 100, 900, 450))])
    assert '<rect class="edge" x="0.0" y="100.0" width="800.0" height="350.0"/>' in page


def test_the_box_of_the_evidence_serves_when_the_hit_has_none():
    hit = Hit("a", Path("a"), 0.5, 0.9)
    shown = HitView(hit, np.zeros((60, 80, 3), np.uint8), (800, 600), Evidence("q", "a", box=(1, 2, 3, 4)))
    assert 'class="edge" x="1.0" y="2.0"' in render(query(), [shown])


def test_the_region_that_a_box_was_found_from_is_shown_dashed_and_said():
    hit = Hit("a", Path("a"), 0.5, 0.9, box=(120, 160, 200, 220), located_by="tokens")
    evidence = Evidence("q", "a", region=(100, 150, 400, 300))
    page = render(query(), [HitView(hit, np.zeros((60, 80, 3), np.uint8), (800, 600), evidence)])
    assert '<rect class="region" x="100" y="150" width="300" height="150"/>' in page.replace(".0", "")
    said = [text.replace("\u00a0", " ") for text in Outline(page).said("dd")]
    assert "the heat map of matching tokens" in said
    assert "x 100–400, y 150–300 (300 × 150 px), dashed" in said


def test_a_region_that_is_the_box_itself_is_drawn_once():
    hit = Hit("a", Path("a"), 0.5, 0.9, box=(100, 150, 400, 300), located_by="region")
    evidence = Evidence("q", "a", region=(100, 150, 400, 300))
    page = render(query(), [HitView(hit, np.zeros((60, 80, 3), np.uint8), (800, 600), evidence)])
    assert 'class="region"' not in page
    assert "the best matching region" in Outline(page).said("dd")


def test_the_querys_box_is_drawn_too():
    assert 'class="edge" x="10.0" y="20.0"' in render(query(box=(10, 20, 300, 400)), [])


def test_facts_of_an_answer_are_shown():
    hit = view("a", 0.62, box=(100, 150, 400, 450), points=7, attributes={"label": "Youth"}, stages={"late": 0.91})
    said = Outline(render(query(), [hit], details={"Images": 287}, seconds={"late": 0.004, "encode": 1.5})).said
    assert "62%" in said("strong")
    assert "likely the same" in said("span")
    facts = [text.replace("\u00a0", " ") for text in said("dd")]
    assert facts[:4] == ["287", "1.5 s", "4 ms", "1.5 s"]  # in all, then stage by stage
    assert facts[4:8] == ["0.500", "7 of 99 matches", "x 100–400, y 150–450 (300 × 300 px)", "Youth"]
    assert said("td") == ["late", "0.910"]


def test_why_shows_lines_and_heat_when_there_is_evidence():
    captions = Outline(render(query(), [view("a", 0.9, points=70, heat=True)])).said("figcaption")
    assert [caption.partition(":")[0] for caption in captions[1:]] == ["Query", "Answer"]
    assert "60 of 70 matching points" in captions[0]
    assert Outline(render(query(), [view("a", 0.9)])).said("figcaption") == []


def pair_tokens(*support: float) -> TokenMatches:
    """So many tokens in a row, each matching its own counterpart."""
    x = np.arange(len(support), dtype=np.float32) * 200
    boxes = np.stack([x, x, x + 100, x + 100], axis=1)
    pairs, strength = np.stack([np.arange(len(x))] * 2, axis=1), np.array(support, np.float32)
    return TokenMatches("q", "a", pairs, strength, strength, boxes, boxes, boxes, boxes)


def test_why_shows_query_and_answer_with_the_parts_that_matched():
    outline = Outline(render(query(), [view("a", 0.9, tokens=pair_tokens(0.3, 0.2, 0.1))]))
    assert outline.said("figcaption") == [
        "Query: the 3 best matching parts.",
        "Answer: the matching parts, with the same numbers.",
    ]
    assert [image["alt"] for image in outline.all("img")][2:] == [
        "The query with the 3 best matching parts, numbered",
        "a with the matching parts",
    ]


def test_tokens_that_support_nothing_are_not_shown():
    assert Outline(render(query(), [view("a", 0.9, tokens=pair_tokens(0.0))])).said("figcaption") == []


def test_without_a_calibration_nothing_is_called_likely():
    page = " ".join(render(query(), [view("a", None), view("b", None)]).split())
    assert "This recipe has no calibration" in page
    assert "likely show" not in page
    assert 'class="chance"' not in page


def test_every_picture_has_an_alternative_text_and_its_size():
    for image in Outline(render(query(), [view("a", 0.9, points=3, heat=True)])).all("img"):
        assert image["alt"]
        assert int(image["width"]) > 0
        assert int(image["height"]) > 0


def test_pictures_are_reduced_to_640_pixels_and_are_what_was_given():
    page = render(query(height=1200, width=900), [])
    source = Outline(page).all("img")[0]["src"]
    image = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2])))
    assert image.size == (480, 640)
    assert abs(int(np.asarray(image.convert("RGB")).mean()) - 90) <= 2


def test_shrink_keeps_a_sliver_at_one_pixel():
    assert shrink(np.zeros((3, 6400, 3), np.uint8), 640).shape == (1, 640, 3)


def test_headings_never_skip_a_level():
    page = render_many("t", [Section(query("a"), [view("x", 0.9)]), Section(query("b"), [])])
    levels = [int(tag[1]) for tag, _ in Outline(page).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_no_answers_give_an_empty_state():
    assert "No image shows the same object." in render(query(), [])


def test_unlikely_answers_are_announced_as_such():
    assert "No image likely shows the same object." in render(query(), [view("a", 0.2), view("b", 0.1)])


def test_the_summary_counts_what_is_likely():
    page = " ".join(render(query(), [view("a", 0.9), view("b", 0.5), view("c", 0.49)]).split())
    assert "<strong>2 of 3</strong> answers likely show" in page


def test_several_searches_have_links_to_each():
    sections = [Section(query("a"), [], title="First"), Section(query("b"), [])]
    outline = Outline(render_many("Demo", sections))
    assert outline.said("h1") == ["Demo"]
    links = [link["href"] for link in outline.all("a") if (link["href"] or "").startswith("#search-")]
    ids = [section["id"] for section in outline.all("section")]
    assert links == ["#search-1", "#search-2"]
    assert ids == ["search-1", "search-2"]
    assert outline.said("h2")[:2] == ["First", "b"]
