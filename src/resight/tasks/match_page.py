"""The page of `resight match`: a report and its collections in, self-contained HTML out.

The least certain pairs come first: the entry of A beside its best of B, with probability, offset and ratio of
diameters. If the truth is known, the page begins with precision, recall and a reliability diagram.
"""

from collections.abc import Iterator, Sequence
from importlib import resources

from markupsafe import Markup

from resight.audit.dedup.duplicates_page import make_thumbnail
from resight.audit.match.find_matches import Matched, MatchReport
from resight.collection import Collection
from resight.evaluate.match_quality import Outcome, Quality, draw_reliability
from resight.evaluate.pages.charts import STYLE, draw_chart
from resight.explain.card_page import render_cards
from resight.explain.format import format_metres
from resight.probability_words import format_probability

SHOWN = 200


def render(
    report: MatchReport,
    a: Collection,
    b: Collection,
    outcomes: Sequence[Outcome] = (),
    quality: Quality | None = None,
) -> str:
    pairs = sorted((one for one in report.best if one.b), key=lambda one: abs(one.probability - 0.5))
    return render_cards(
        (resources.files(__package__) / "match_page.html").read_text(encoding="utf-8"),
        title=f"{a.path.name} in {b.path.name}",
        report=report,
        listed=sum(bool(one.b) for one in report.matches),
        quality=quality,
        chart=Markup(draw_chart(draw_reliability(outcomes)) if quality else ""),  # nosec B704  # our own SVG, style or script; its texts are escaped
        chart_style=Markup(STYLE),  # nosec B704  # our own SVG, style or script; its texts are escaped
        pairs=[_show(one, report, a, b) for one in pairs[:SHOWN]],
        hidden=max(len(pairs) - SHOWN, 0),
    )


def _show(one: Matched, report: MatchReport, a: Collection, b: Collection) -> dict[str, str]:
    known = one.probability >= report.settings.least
    return {
        "a": one.label_a or one.a,
        "b": one.label_b or one.b,
        "verdict": f"{format_probability(one.probability)}{'' if known else ', not listed'}",
        "facts": " · ".join(_list_facts(one)),
        "picture_a": draw_picture(a, one.a),
        "picture_b": draw_picture(b, one.b),
    }


def _list_facts(one: Matched) -> Iterator[str]:
    if one.offset_km is not None:
        yield f"{format_metres(1000 * one.offset_km)} apart"
    if one.diameter_ratio is not None:
        yield f"diameters 1 : {one.diameter_ratio:.2f}"
    if one.runner_up:
        yield f"runner-up {format_probability(one.runner_up_probability)}"
    if one.mutual is not None:
        yield "each the other's best" if one.mutual else "not each other's best"


def draw_picture(collection: Collection, name: str) -> str:
    """A data: URI; empty if the file cannot be read."""
    thumbnail = make_thumbnail(collection, name)
    return thumbnail.source if thumbnail else ""
