"""What is twice, and what leaks: pairs, groups, matches between collections, reviews and votes.

The package is also the function `resight.audit(train, evaluation, out, ...)`: calling it calls
`resight.tasks.audit.audit`.
"""

from resight.callable_package import make_callable

make_callable(__name__, "resight.tasks.audit")
