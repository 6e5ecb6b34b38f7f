"""The frame that pages of cards share: its policy lets in its own style and nothing else."""

import re
from pathlib import Path

import pytest
from markupsafe import Markup

import resight
from resight.explain.card_page import render_cards
from resight.files.fingerprint import csp_hash

CARD = """{% extends "card_page.html" %}
{% block title %}{{ name }}{% endblock %}
{% block style %}.own > li { color: red; }{{ more }}{% endblock %}
{% block main %}<ul class="cards"><li>{{ name }}</li></ul>{% endblock %}
"""
SOURCE = Path(resight.__file__).parent
FRAME = SOURCE / "explain" / "card_page.html"
PAGES = [path for path in sorted(SOURCE.rglob("*.html")) if "extends" in path.read_text(encoding="utf-8")]


def test_the_policy_names_the_very_style_of_the_page_and_texts_are_escaped() -> None:
    page = render_cards(CARD, name="a < b", more=Markup('q::before { content: "x"; }'))
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert ".own > li { color: red; }" in style and 'content: "x"' in style and "prefers-color-scheme: dark" in style
    assert f"style-src {csp_hash(style)}" in page.replace("&#39;", "'")
    assert "<title>a &lt; b</title>" in page and "<li>a &lt; b</li>" in page


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_class_of_a_card_page_is_one_that_a_style_names(path: Path) -> None:
    text, frame = path.read_text(encoding="utf-8"), FRAME.read_text(encoding="utf-8")
    used = {name for words in re.findall(r'class="([\w -]+)"', text) for name in words.split()}
    named = set(re.findall(r"\.([a-z]+)", frame + text)) | {"charts"}  # those of charts come with them
    assert used <= named
