"""One process that tidies a collection: `python -m resight.apps.service.tidying COLLECTION`.

All of it steps back behind searches. Where it is killed, nothing is lost: a change to the store happens or does not,
and a part of an index is made again.
"""

import contextlib
import os
import sys

from resight.apps.service.threads import NICE
from resight.errors import CollectionBusy, ResightError

DONE, FAILED, BUSY = 0, 1, 75  # exit codes


def main() -> int:
    with contextlib.suppress(AttributeError, OSError):  # not everywhere
        os.nice(NICE)
    from resight.collection import open_collection  # only now: threads begin with the priority that there is

    try:
        open_collection(sys.argv[1], must_exist=True).tidy()
    except CollectionBusy:
        return BUSY
    except ResightError as error:
        print(error, file=sys.stderr)
        return FAILED
    return DONE


if __name__ == "__main__":
    sys.exit(main())
