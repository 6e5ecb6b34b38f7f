"""Networks that run on torch: what the backbones timm and transformers share."""
