"""The environment of the processes that the service starts: no secrets, and one thread for the sums of each."""

import os

from resight.apps.service import api_keys, settings

SECRETS = (settings.VARIABLE, api_keys.VARIABLE)


def choose_environment() -> dict[str, str]:
    public = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return {**public, "OPENBLAS_NUM_THREADS": "1"}
