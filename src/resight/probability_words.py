"""Probabilities in words, for the command, pages and maps: probabilities in, a verdict out."""

from collections.abc import Sequence

LIKELY = 0.5
NOTHING = "–"
VERDICTS = ((0.9, "very likely"), (LIKELY, "likely"), (0.1, "unlikely"))


def is_likely(probability: float | None) -> bool:
    """Also true without a calibrated probability: nothing then makes the answer unlikely."""
    return probability is None or probability >= LIKELY


def format_probability(probability: float | None) -> str:
    """A percentage that never claims certainty."""
    if probability is None:
        return NOTHING
    if probability >= 0.995:
        return ">99%"
    return "<1%" if probability < 0.005 else f"{probability * 100:.0f}%"


def format_verdict(probability: float | None) -> str:
    if probability is None:
        return "not calibrated"
    return next((word for least, word in VERDICTS if probability >= least), "very unlikely")


def format_outcome(probabilities: Sequence[float | None], images: int, filtered: bool = False) -> str:
    """What an answer amounts to: "1 of 10 answers is very likely the same", "probably not among these 437 images".

    `probabilities` are those of the answers, out of this many `images`, of which filters may have let through a part.
    """
    count = len(probabilities)
    if not count:
        return "nothing found: " + ("no image passes the filters" if filtered else "the collection is empty")
    known = [probability for probability in probabilities if probability is not None]
    if not known:
        return f"{count} {'answer' if count == 1 else 'answers'}, without probabilities: not calibrated"
    for least, word in VERDICTS:
        found = sum(probability >= least for probability in known)
        if found and least >= LIKELY:
            part = "the answer" if count == 1 else f"{found} of {count} answers"
            return f"{part} {'is' if found == 1 else 'are'} {word} the same"
    where = "the images that pass the filters" if filtered else f"these {images:,} images"
    return f"probably not among {where}"
