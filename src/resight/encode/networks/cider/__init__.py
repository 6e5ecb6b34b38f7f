"""CiDeR, a network that finds the object in an image and describes it in one pass.

    f = f^p ∘ f^l ∘ f^c ∘ f^e ∘ f^b        images → backbone → enhancement → context → localisation → pooling

Song et al., On Train-Test Class Overlap and Detection for Image Retrieval, CVPR 2024.
"""
