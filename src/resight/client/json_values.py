"""JSON of the service in, the library's values out: answers, hits, evidence, records, attributes, positions, craters.

An Answer of the service is built as the library builds its own, so that whatever reads one reads the other. What the
service does not send stays empty: descriptors, and the time of change of files. It names the path of a file to clients
on its own machine only; elsewhere `path` is the id.
"""

import base64
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from resight.client.image_upload import QueryImage
from resight.client.service_values import CollectionInfo, Health, Job, QuarantinedUpload
from resight.collection.answer import Answer, HitDrawer
from resight.collection.answer_pictures import AnswerPictures
from resight.collection.attributes import AttributeSummary
from resight.collection.crater_positions import CraterPositions
from resight.data import image_files
from resight.errors import InputError
from resight.geodesy import PositionEstimate, Positions
from resight.store import ImageRecord
from resight.types import Box, Evidence, FloatArray, Hit, Match, Picture, Query, Ranking, Skipped, TokenMatches

Json = Mapping[str, Any]
Explain = Callable[["SearchForm", Hit, str], Evidence]  # the str: id of the query
ReadStored = Callable[[str], Picture]  # an image of the service, by its id


@dataclass(frozen=True)
class SearchForm:
    """A search as it was sent, to ask for the reasons of its hits."""

    image: QueryImage
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ServiceAnswer(Answer):
    """An Answer of a service; it explains and draws its hits by asking there again.

    Attributes:
        form: The search as it was sent.
        collection: The name of the collection.
        version: Changes with every change of the collection.
        drawer: Explains and draws.
    """

    form: SearchForm | None = field(default=None, repr=False, compare=False)
    collection: str = ""
    version: int = 0
    drawer: HitDrawer | None = field(default=None, repr=False, compare=False)

    def _repr_html_(self) -> str:
        return super()._repr_html_() if self.drawer else f"<div>{html.escape(self.verdict)}</div>"

    @property
    def _drawer(self) -> HitDrawer:
        if self.drawer is None:
            raise InputError(
                "an answer of AsyncClient asks the service nothing by itself",
                expected="a question that can be awaited",
                actual="explain or show of the answer",
                fix="evidence = await client.explain(answer, hit)",
            )
        return self.drawer


@dataclass(frozen=True)
class ServiceDrawer(HitDrawer):
    """Explains the hits of one answer of a service, and draws them on the pictures that it sends."""

    form: SearchForm
    sizes: Mapping[str, tuple[int, int]]
    ask_why: Explain
    read_stored: ReadStored

    def explain(self, hit: Hit) -> Evidence:
        return replace(self.ask_why(self.form, hit, self.query.id), drawer=self)

    @property
    def pictures(self) -> AnswerPictures:
        file = self.form.image.file
        source = image_files.read_bytes(file[1], file[0]) if file else self.read_stored(self.query.id)
        query = replace(self.query, source=replace(source, size=self.query.size))
        return AnswerPictures(query, self.paths, self.explain, self._read)

    def _read(self, id: str, _: Path) -> Picture:
        """Reduced, with the size of the original, which boxes refer to."""
        return replace(self.read_stored(id), size=self.sizes[id])


def read_answer(
    found: Json, form: SearchForm, ask_why: Explain | None = None, read_stored: ReadStored | None = None
) -> ServiceAnswer:
    """With `ask_why` and `read_stored`, the answer can explain and draw its hits."""
    query = read_query_info(found["query"], form.image)
    ids = tuple(hit["id"] for hit in found["hits"])
    ranking = Ranking(
        query.id,
        ids,
        np.array([hit["score"] for hit in found["hits"]], np.float32),
        boxes=_collect(found, "box", read_box),
        seconds=found["seconds"],
        signals=_collect(found, "stages", dict),
        probabilities=_collect(found, "probability", float),
        proof=found["proof"],
        located_by={hit["id"]: hit["located_by"] for hit in found["hits"] if hit["located_by"]},
        other_boxes={
            hit["id"]: tuple(map(read_box, hit["other_boxes"])) for hit in found["hits"] if hit["other_boxes"]
        },
    )
    paths = {hit["id"]: Path(hit["path"] or hit["id"]) for hit in found["hits"]}
    sizes = {hit["id"]: _read_size(hit["size"]) for hit in found["hits"]}
    drawer = None
    if ask_why and read_stored:
        drawer = ServiceDrawer(query, ranking, None, paths, form, sizes, ask_why, read_stored)
    return ServiceAnswer(
        query,
        ranking,
        tuple(_read_hit(hit, drawer) for hit in found["hits"]),
        position=_read_position(found["position"]),
        stage=found["stage"],
        sizes=sizes,
        searched=found["searched"],
        form=form,
        collection=found["collection"],
        version=found["version"],
        drawer=drawer,
    )


def read_query_info(found: Json, image: QueryImage) -> Query:
    width, height = _read_size(found["size"])
    whole = (0.0, 0.0, float(width), float(height))
    outline = read_box(found["box"]) if found["box"] else whole
    return Query(found["id"], (width, height), outline, (), found["attributes"], source=image)


def _collect(found: Json, name: str, read: Callable[[Any], Any]) -> dict[str, Any]:
    """Id → a field of its hit, where it is known."""
    return {hit["id"]: read(hit[name]) for hit in found["hits"] if hit[name] is not None}


def _read_hit(hit: Json, drawer: HitDrawer | None) -> Hit:
    return Hit(
        id=hit["id"],
        path=Path(hit["path"] or hit["id"]),
        score=hit["score"],
        probability=hit["probability"],
        box=None if hit["box"] is None else read_box(hit["box"]),
        attributes=hit["attributes"],
        stages=hit["stages"],
        located_by=hit["located_by"],
        other_boxes=tuple(map(read_box, hit["other_boxes"])),
        drawer=drawer,
    )


def read_evidence(found: Json, query_id: str) -> Evidence:
    """Heat maps are in steps of 1/255, and of the points a service sends at most 300."""
    id, match = found["id"], found["match"]
    return Evidence(
        query_id,
        id,
        box=None if found["box"] is None else read_box(found["box"]),
        heat=_read_heat(found["heat"]),
        match=_read_match(match, query_id, id) if match else None,
        probability=found["probability"],
        query_heat=_read_heat(found["query_heat"]),
        tokens=_read_tokens(found["pairs"], query_id, id) if found["pairs"] else None,
        region=None if found["region"] is None else read_box(found["region"]),
        located_by=found["located_by"],
    )


def _read_match(match: Json, query_id: str, image_id: str) -> Match:
    return Match(
        query_id,
        image_id,
        match["inliers"],
        np.array(match["transform"], np.float64),
        np.array(match["points"], np.float32).reshape(-1, 4),
        match["model"],
        match["tentative"],
        match["significance"],
    )


def _read_heat(heat: Json | None) -> FloatArray | None:
    if heat is None:
        return None
    grey = np.frombuffer(base64.b64decode(heat["values"]), np.uint8)
    return grey.reshape(heat["rows"], heat["columns"]).astype(np.float32) / np.float32(255)


def _read_tokens(pairs: Sequence[Json], query_id: str, image_id: str) -> TokenMatches:
    """The best pairs alone, in place of one per token of the query."""
    query, image = (np.array([pair[side] for pair in pairs], np.float32) for side in ("query", "image"))
    rows = np.arange(len(pairs), dtype=np.int64)
    similarities, support = (np.array([pair[name] for pair in pairs], np.float32) for name in ("similarity", "support"))
    both = np.stack([rows, rows], axis=1)
    return TokenMatches(query_id, image_id, both, similarities, support, query, query, image, image)


def _read_position(found: Json | None) -> PositionEstimate | None:
    return (
        None
        if found is None
        else PositionEstimate(**{**pick(PositionEstimate, found), "support": tuple(found["support"])})
    )


def read_record(found: Json) -> ImageRecord:
    path, size = Path(found["path"] or found["id"]), _read_size(found["size"])
    return ImageRecord(found["id"], path, found["sha256"], found["bytes"], 0, size, found["attributes"])


def read_summary(found: Json) -> AttributeSummary:
    values = tuple((one["value"], one["count"]) for one in found["values"])
    return AttributeSummary(found["name"], found["kind"], found["count"], found.get("min"), found.get("max"), values)


def read_positions(found: Json) -> Positions:
    headings = [np.nan if heading is None else heading for heading in found["headings"]]
    degrees = (np.array(values, np.float64) for values in (found["lats"], found["lons"], headings))
    return Positions(tuple(found["ids"]), *degrees)


def read_craters(found: Json) -> CraterPositions:
    lats, lons, diameters = (np.array(found[name], np.float64) for name in ("lats", "lons", "diameters_km"))
    images = tuple(map(tuple, found["images"]))
    return CraterPositions(tuple(found["labels"]), images, lats, lons, diameters, found["radius_km"])


def read_health(found: Json) -> Health:
    faults = {name: tuple(reasons) for name, reasons in found["faults"].items()}
    return Health(
        found["status"],
        found["ready"],
        found["version"],
        faults,
        found["images"],
        tuple(found["collections"]),
        found["quarantined"],
    )


def read_collection(found: Json) -> CollectionInfo:
    return CollectionInfo(
        **{**pick(CollectionInfo, found), "encoders": tuple(found["encoders"]), "reads": tuple(found["reads"])}
    )


def read_job(found: Json) -> Job:
    skipped = tuple(Skipped(one["path"], one["reason"]) for one in found["skipped"])
    return Job(**{**pick(Job, found), "skipped": skipped})


def read_quarantined(found: Json) -> QuarantinedUpload:
    return QuarantinedUpload(**pick(QuarantinedUpload, found))


def pick(kind: type[Any], found: Json) -> dict[str, Any]:
    """The fields of a dataclass: a newer service may send more."""
    return {one.name: found[one.name] for one in fields(kind)}


def read_box(found: Sequence[float]) -> Box:
    x0, y0, x1, y1 = found
    return x0, y0, x1, y1


def _read_size(found: Sequence[int]) -> tuple[int, int]:
    width, height = found
    return width, height
