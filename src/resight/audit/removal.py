"""Which training classes go. In: confirmed pairs, the classes of training images, texts. Out: Removals.

Of each evaluation image, the class that is most frequent among its confirmed matches is removed whole, as in CiDeR
(where classes share a count, the surer one, then the first by name). Of images without a class, each confirmed match is
removed by itself. A class whose name contains one of the texts (whatever case or accents) goes too. The other classes
with confirmed matches stay and are told, as they may be the same thing under a second name; `every` removes them too.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from resight.audit.pairs import Pair


@dataclass(frozen=True)
class Removal:
    """`name` is a class, or the id of an image without one."""

    name: str
    labelled: bool
    why: Literal["matches", "text"]
    evaluation: tuple[str, ...] = ()  # images that it is removed for
    pairs: int = 0  # confirmed
    text: str = ""


@dataclass(frozen=True)
class Chosen:
    removals: tuple[Removal, ...]
    left: Mapping[str, int]  # classes that stay though they have confirmed matches, with their number


def choose_removals(
    confirmed: Sequence[Pair],
    classes: Mapping[str, str | None],
    names: Mapping[str, str],
    texts: Iterable[str] = (),
    *,
    every: bool = False,
) -> Chosen:
    """`classes`: training image → class, of those in pairs; `names`: class → how people call it, of all."""
    matches: dict[str, list[Pair]] = defaultdict(list)  # evaluation image → its pairs
    reasons: dict[tuple[str, bool], set[str]] = defaultdict(set)  # class, labelled → evaluation images
    counts: Counter[tuple[str, bool]] = Counter()
    for pair in confirmed:
        label = classes.get(pair.b)
        counts[(label, True) if label is not None else (pair.b, False)] += 1
        if label is None:
            reasons[pair.b, False].add(pair.a)
        elif every:
            reasons[label, True].add(pair.a)
        else:
            matches[pair.a].append(pair)
    for image, pairs in matches.items():
        reasons[_find_most_frequent(pairs, classes), True].add(image)
    removals = [
        Removal(name, labelled, "matches", tuple(sorted(images)), counts[name, labelled])
        for (name, labelled), images in sorted(reasons.items())
    ]
    gone = {removal.name for removal in removals if removal.labelled}
    removals += [
        Removal(label, True, "text", text=text) for label, text in _find_texts(names, texts) if label not in gone
    ]
    gone |= {removal.name for removal in removals if removal.labelled}
    left = {name: count for (name, labelled), count in sorted(counts.items()) if labelled and name not in gone}
    return Chosen(tuple(removals), left)


def _find_most_frequent(pairs: Sequence[Pair], classes: Mapping[str, str | None]) -> str:
    often: Counter[str] = Counter()
    surest: dict[str, float] = defaultdict(float)
    for pair in pairs:
        label = classes[pair.b]
        assert label is not None
        often[label] += 1
        surest[label] += pair.probability
    return min(often, key=lambda label: (-often[label], -surest[label], label))


def _find_texts(names: Mapping[str, str], texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Classes with the first text that their name contains."""
    wanted = [(text.strip(), _fold(text)) for text in texts if text.strip()]
    for label, name in sorted(names.items()):
        folded = _fold(name)
        found = next((text for text, plain in wanted if plain in folded), None)
        if found is not None:
            yield label, found


def _fold(text: str) -> str:
    """Small letters without accents: "Hôtel" → "hotel"."""
    parts = unicodedata.normalize("NFKD", text.strip())
    return "".join(letter for letter in parts if not unicodedata.combining(letter)).casefold()
