"""One module a command. Their tops import nothing heavy: `resight --help` has to answer at once."""
