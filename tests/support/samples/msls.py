"""MSLS in small: two cities of the split "val" and London; photos every 10 metres along a street that runs north."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np

from support.builders import draw_texture

CASES = (
    {},
    {"subtask": "d2n"},
    {"heading": 40.0, "panoramas": True, "unmatched": True},
    {"cities": ["london"], "split": "train", "queries": 2},
    {"cities": ["london"], "split": "train", "queries": 2, "gallery": 6, "seed": 1},
)
ORIGINS = {"cph": (347000.0, 6173000.0), "sf": (551000.0, 4180000.0), "london": (699000.0, 5710000.0)}
PANORAMA, FAR = 3, 4  # numbers of a query


def write(folder: Path, rng: np.random.Generator) -> None:
    for city, (east, north) in ORIGINS.items():
        database = [make_photo(number, east, north + 10 * number, heading=10.0) for number in range(12)]
        queries = [
            make_photo(0, east + 3, north + 20, heading=350.0),
            make_photo(1, east + 3, north + 50, heading=190.0, night=True),
            make_photo(2, east, north + 110, heading=20.0),
            make_photo(PANORAMA, east, north, pano=True),
            make_photo(FAR, east + 900, north),
        ]
        for side, photos in (("database", database), ("query", queries)):
            write_side(folder / "train_val" / city / side, photos, rng)


def make_photo(
    number: int, east: float, north: float, heading: float = 0.0, night: bool = False, pano: bool = False
) -> dict[str, object]:
    return {"number": number, "east": east, "north": north, "heading": heading, "night": night, "pano": pano}


def write_side(folder: Path, photos: Sequence[Mapping[str, object]], rng: np.random.Generator) -> None:
    tables: dict[str, list[str]] = {
        "raw.csv": [",key,lon,lat,ca,captured_at,pano"],
        "postprocessed.csv": [",key,easting,northing,unique_cluster,night,control_panel,view_direction"],
        "seq_info.csv": [",key,sequence_key,frame_number"],
        "subtask_index.csv": [",key,all,s2w,w2s,o2n,n2o,d2n,n2d"],
    }
    for row, photo in enumerate(photos):
        key = f"{folder.parent.name}{folder.name[0]}{photo['number']}"
        lat = 50 + float(str(photo["number"])) * 1e-4  # not the place of easting and northing: only a number here
        tables["raw.csv"].append(f"{row},{key},12.5,{lat},{photo['heading']},2018-05-30,{photo['pano']}")
        tables["postprocessed.csv"].append(
            f"{row},{key},{photo['east']},{photo['north']},{row},{photo['night']},False,Forward"
        )
        tables["seq_info.csv"].append(f"{row},{key},walk-{folder.name},{row + 7}")
        to_night = photo["night"] if folder.name == "query" else not photo["night"]
        tables["subtask_index.csv"].append(f"{row},{key},True,False,False,False,False,{to_night},False")
        path = folder / "images" / f"{key}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), draw_texture(rng, 64, 48))
    for name, lines in tables.items():
        (folder / name).write_text("\n".join(lines) + "\n")
