"""The last answers of this process, so that "why" need not search again. What is missing here is worked out anew."""

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable

from resight.collection import Answer
from resight.collection.view import View

KEPT = 16  # each keeps the state of the collection that it was found in
LIFETIME = 600.0  # seconds; the store forgets old states after an hour
Found = tuple[View, Answer]


class AnswerCache:
    def __init__(self, size: int = KEPT, lifetime: float = LIFETIME) -> None:
        self._size = size
        self._lifetime = lifetime
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, tuple[float, Found]] = OrderedDict()  # the oldest first

    def get(self, question: Hashable) -> Found | None:
        with self._lock:
            self._drop()
            return self._answers[question][1] if question in self._answers else None

    def put(self, question: Hashable, found: Found) -> None:
        with self._lock:
            self._answers.pop(question, None)
            self._answers[question] = time.monotonic(), found
            self._drop()

    def _drop(self) -> None:
        oldest = time.monotonic() - self._lifetime
        while self._answers and (len(self._answers) > self._size or next(iter(self._answers.values()))[0] < oldest):
            self._answers.popitem(last=False)
