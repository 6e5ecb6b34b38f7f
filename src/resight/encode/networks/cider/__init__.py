"""CiDeR, a network that finds the thing in an image and describes it in one pass; a module a part.

    f = f^p ∘ f^l ∘ f^c ∘ f^e ∘ f^b        images → trunk → enhancement → context → localisation → pooling

Song et al., On Train-Test Class Overlap and Detection for Image Retrieval, CVPR 2024.
"""
