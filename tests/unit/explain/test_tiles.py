import itertools

import pytest

from resight.errors import InputError
from resight.explain.projection import fit
from resight.explain.tiles import Tiles, list_tiles

TEMPLATE = "https://tiles.example.org/{z}/{x}/{y}.png"
TILES = Tiles(TEMPLATE, "© somebody")


@pytest.mark.parametrize(
    "template",
    ["", "tiles/{z}/{x}/{y}.png", "https://tiles.example.org/{z}/{x}.png", "ftp://t.example.org/{z}/{x}/{y}",
     "https://{s}.example.org/{z}/{x}/{y}.png", "https://t.example.org; script-src */{z}/{x}/{y}",
     "https://t.example.org/{z}/{x}/{y}.png' onload='", "https://user@t.example.org/{z}/{x}/{y}",
     "https://t.example.org/{z}/{x}/{y}/{y}"],
)  # fmt: skip
def test_what_is_no_address_of_tiles_is_refused(template):
    with pytest.raises(InputError, match="not the address of a tile server"):
        Tiles(template, "© somebody")


def test_tiles_without_attribution_are_refused():
    with pytest.raises(InputError, match="has to credit the tiles"):
        Tiles(TEMPLATE, " ")


def test_the_origin_is_the_server_alone():
    assert Tiles("http://localhost:8081/t/{z}/{x}/{y}.png?key=a", "me").origin == "http://localhost:8081"


def test_a_tile_lies_where_its_corners_are():
    """The map spans 0.81°: three tiles fit at level 11, whose column and row 1024 begin at latitude and longitude 0."""
    shown = fit([(-0.3, -0.3), (0.3, 0.3)], ratio=1.0)
    tile = next(tile for tile in list_tiles(TILES, shown) if tile.address.endswith("/11/1024/1024.png"))
    assert (tile.x, tile.y) == pytest.approx((0.5, 0.5))
    assert tile.address.startswith("https://tiles.example.org/")


@pytest.mark.parametrize("position", [(52.5, 13.28), (-33.0, 179.999), (70.0, -20.0)])
def test_tiles_cover_the_map_without_gaps(position):
    shown = fit([position, (position[0] + 0.01, position[1] - 0.01)], ratio=4 / 3)
    tiles = list_tiles(TILES, shown)
    assert min(tile.x for tile in tiles) <= 0
    assert min(tile.y for tile in tiles) <= 0
    assert max(tile.x + tile.width for tile in tiles) >= 1
    assert max(tile.y + tile.height for tile in tiles) >= 1
    assert 4 <= len(tiles) <= 56
    columns = sorted({round(tile.x, 6) for tile in tiles})
    steps = [later - earlier for earlier, later in itertools.pairwise(columns)]
    assert steps == pytest.approx([tiles[0].width] * len(steps), abs=1e-4)


def test_beyond_the_antimeridian_columns_begin_again():
    shown = fit([(0.0, 179.999), (0.0, -179.999)], ratio=1.0)
    columns = {int(tile.address.split("/")[4]) for tile in list_tiles(TILES, shown)}
    level = int(list_tiles(TILES, shown)[0].address.split("/")[3])
    assert {0, 2**level - 1} <= columns


@pytest.mark.parametrize("positions", [[(0.0, -60.0), (20.0, 60.0)], [(89.0, 0.0)]])
def test_a_map_that_is_too_wide_or_polar_has_no_tiles(positions):
    assert list_tiles(TILES, fit(positions, ratio=4 / 3)) == []
