"""Contrast through late interaction: which image of a batch shows the same thing?

    s(q, x) = (1/|q|) Σ_i max_j ⟨q_i, x_j⟩        loss = cross-entropy of softmax(s / temperature), both ways

Row b of the one side and row b of the other show the same thing, all other rows are wrong answers. With one row an
image, s is the cosine, and this is the contrastive loss of CLIP and SimCLR.
"""

import torch
from torch import Tensor, nn


class MaxSimContrast(nn.Module):
    def __init__(self, scale: float = 20.0) -> None:
        """`scale` is 1 / temperature; it is learnt along."""
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(scale).log())

    def forward(self, queries: Tensor, query_mask: Tensor, images: Tensor, image_mask: Tensor) -> Tensor:
        """Rows [B, K, d] and masks [B, K], true for rows that there are → the loss."""
        logits = interact_all(queries, query_mask, images, image_mask) * self.log_scale.exp().clamp(max=100.0)
        right = torch.arange(len(logits))
        both = nn.functional.cross_entropy(logits, right) + nn.functional.cross_entropy(logits.T, right)
        return both / 2


def interact_all(queries: Tensor, query_mask: Tensor, images: Tensor, image_mask: Tensor) -> Tensor:
    """[B, Kq, d] and [C, K, d] → [B, C]: each of the one with each of the other."""
    likeness = queries.flatten(0, 1) @ images.flatten(0, 1).T
    likeness = likeness.view(*queries.shape[:2], *images.shape[:2])
    if not bool(image_mask.all()):
        likeness = likeness.masked_fill(~image_mask, -torch.inf)
    best = likeness.amax(dim=3) * query_mask[:, :, None]
    return best.sum(dim=1) / query_mask.sum(dim=1)[:, None]
