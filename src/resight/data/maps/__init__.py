"""Maps of the Moon and of planets: images, heights and crater catalogues in, crops out."""
