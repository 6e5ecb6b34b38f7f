"""The applications: the command (cli/), the HTTP service (service/) and its page (web/)."""
