"""Maps of the Moon and of planets: their grid, heights and craters in, crops out; and where made images are kept."""
