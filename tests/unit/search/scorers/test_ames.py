"""AMES against a second reading of it in torch, at random weights of the published layout."""

from pathlib import Path

import numpy as np
import pytest

from resight.errors import InputError, MissingWeights, SpaceMismatch
from resight.search import rerankers, scorers
from resight.search.scorers.ames import make_masks
from resight.types import Descriptors

torch = pytest.importorskip("torch")
nn = torch.nn

WIDTH, INNER, LAYERS, HEADS, DIMENSIONS = 8, 12, 2, 2, 6


class Block(nn.Module):
    """Attention within images, attention across images, and two linear maps, a norm after each."""

    def __init__(self) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, rows, hidden_within, hidden_across):
        rows = self.norm1(rows + self.self_attn(rows, rows, rows, attn_mask=hidden_within)[0])
        rows = self.norm2(rows + self.cross_attn(rows, rows, rows, attn_mask=hidden_across)[0])
        return self.norm3(rows + self.linear2(self.linear1(rows).relu()))


class Bits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Parameter(torch.randn(DIMENSIONS, WIDTH))

    def forward(self, rows):
        return (nn.functional.normalize(rows, dim=-1) @ self.W).sign()


class Network(nn.Module):
    """The published layout, with torch's own attention."""

    def __init__(self, binary: bool) -> None:
        super().__init__()
        self.binary = binary
        self.mtc_token = nn.Parameter(torch.randn(WIDTH))
        first = [Bits(), nn.Linear(WIDTH, WIDTH)] if binary else [nn.Linear(DIMENSIONS, WIDTH)]
        self.remap_local = nn.Sequential(*first, nn.LayerNorm(WIDTH))
        self.decoder = nn.Module()
        self.decoder.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.classifier = nn.Linear(WIDTH, 1)

    def forward(self, query, image):
        sides = [self.remap_local(nn.functional.normalize(side, dim=-1)) for side in (query, image)]
        if not self.binary:
            sides[1] = sides[1].half().float()
        first, rows = 1 + len(query), torch.cat([self.mtc_token[None], *sides])[None]
        hidden_within = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.bool)
        hidden_within[1:first, first:] = hidden_within[first:, 1:first] = True
        hidden_across = torch.zeros_like(hidden_within)
        hidden_across[1:first, 1:first] = hidden_across[first:, first:] = True
        for block in self.decoder.layers:
            rows = block(rows, hidden_within, hidden_across)
        return self.classifier(rows[0, 0])[0]


def make_network(binary: bool) -> Network:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = Network(binary).eval()
        for parameter in network.parameters():  # zeros and ones of a fresh network would hide mistakes
            nn.init.normal_(parameter, std=0.7)
        return network


def save(network: Network, path: Path, **changed: object) -> Path:
    state = network.state_dict()
    state.update(changed)
    torch.save({"state": state}, path)
    return path


def draw(name: str, count: int, dimensions: int = DIMENSIONS) -> Descriptors:
    generator = np.random.default_rng(sum(map(ord, name)))
    vectors = generator.normal(size=(count, dimensions)).astype(np.float32)
    return Descriptors((name,), vectors, np.zeros(count, np.int32), boxes=np.zeros((count, 4), np.float32))


@pytest.mark.parametrize("binary", [False, True])
def test_scores_are_those_of_an_independent_reading(tmp_path: Path, binary: bool):
    network = make_network(binary)
    scorer = scorers.build("ames", weights=save(network, tmp_path / "ames.pt"))
    for number in range(4):
        query, image = draw(f"q{number}", 3 + number), draw(f"x{number}", 5)
        with torch.no_grad():
            expected = float(network(torch.from_numpy(query.vectors), torch.from_numpy(image.vectors)))
        assert scorer.score(query, image) == pytest.approx(expected, abs=2e-5)


def test_only_the_first_descriptors_of_each_side_count(tmp_path: Path):
    path = save(make_network(False), tmp_path / "ames.pt")
    query, image = draw("q", 9), draw("x", 7)
    cut = scorers.build("ames", weights=path, query_tokens=4, image_tokens=2)
    whole = scorers.build("ames", weights=path)
    few = [Descriptors(side.ids, side.vectors[:count], side.owners[:count]) for side, count in ((query, 4), (image, 2))]
    assert cut.score(query, image) == pytest.approx(whole.score(*few))
    assert cut.score(query, image) != pytest.approx(whole.score(query, image), abs=1e-4)
    assert cut.fingerprint != whole.fingerprint


def test_an_image_without_descriptors_has_a_score(tmp_path: Path):
    scorer = scorers.build("ames", weights=save(make_network(True), tmp_path / "ames.pt"))
    assert np.isfinite(scorer.score(draw("q", 3), draw("x", 0)))


def test_masks_by_hand():
    within, across = make_masks(1, 2)  # the matching token, one row of the query, two of the image
    assert within.astype(int).tolist() == [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 1], [1, 0, 1, 1]]
    assert across.astype(int).tolist() == [[1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]


def test_other_local_descriptors_are_refused(tmp_path: Path):
    scorer = scorers.build("ames", weights=save(make_network(True), tmp_path / "ames.pt"))
    with pytest.raises(SpaceMismatch, match="6 dimensions"):
        scorer.score(draw("q", 3, 5), draw("x", 3, 5))


def test_weights_of_another_layout_are_refused(tmp_path: Path):
    network = make_network(False)
    for name, changed, words in (
        ("shape.pt", {"classifier.weight": torch.zeros(1, WIDTH + 1)}, r"classifier.weight \[1, 9\]"),
        ("norm.pt", {"decoder.norm.weight": torch.ones(WIDTH)}, "also decoder.norm.weight"),
    ):
        with pytest.raises(InputError, match=words):
            scorers.build("ames", weights=save(network, tmp_path / name, **changed))
    torch.save({"state": {"other": torch.zeros(3)}}, tmp_path / "other.pt")
    with pytest.raises(InputError, match="mtc_token"):
        scorers.build("ames", weights=tmp_path / "other.pt")
    with pytest.raises(InputError, match="3 heads"):
        scorers.build("ames", weights=save(network, tmp_path / "heads.pt"), heads=3)


def test_missing_weights_say_where_they_come_from():
    with pytest.raises(MissingWeights, match="page of its authors"):
        rerankers.build("pair_transformer", scorer="ames")


def test_the_published_blend(tmp_path: Path):
    """λ · global + (1 − λ) · σ(γ · logit), with the γ of the distilled network."""
    path = save(make_network(True), tmp_path / "ames.pt")
    choice = {"name": "ames", "weights": str(path)}
    reranker = rerankers.build("pair_transformer", scorer=choice, balance=0.35, gamma=0.1)
    assert reranker.signals == ("pair_transformer",)
