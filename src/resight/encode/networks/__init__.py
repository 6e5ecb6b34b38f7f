"""Networks that run on torch, and their weights: shared by the backbones timm, transformers and cider."""
