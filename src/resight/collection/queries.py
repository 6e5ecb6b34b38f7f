"""How Python looks at a collection, and searches it: an image in any form, or many, in; Hits and Answers out.

One image gives its result at once. A list, a tuple or an array of images gives a list of results, any other iterable an
iterator over them, in the same order: while one image is searched for, others are decoded and encoded
(batch_search.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from resight.collection.encode import Encoding, keep_picture
from resight.collection.metadata import Metadata
from resight.errors import CollectionError, ResightError, did_you_mean
from resight.files.remote import to_url
from resight.types import Box, Query, Recipe

if TYPE_CHECKING:
    from resight.collection.answer import Answer
    from resight.collection.hits import Hits
    from resight.collection.view import View
    from resight.data.image_inputs import ImageInput
    from resight.search.filters import Near
    from resight.search.request import SearchRequest, StoredImage
    from resight.store import ImageRecord

Errors = Literal["raise", "return"]
THUMBNAILS = 8  # of a collection in a notebook
Progress = Callable[[int, int], None]


class Searchable:
    """What `Collection` offers to look at its images and to search them."""

    path: Path
    recipe: Recipe
    metadata: Metadata
    _encoding: Encoding

    def view(self) -> "View":
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(self.view().stamps)

    def __contains__(self, name: object) -> bool:
        return name in self.view().stamps

    def __getitem__(self, name: str) -> "ImageRecord":
        view = self.view()
        if name not in view.stamps:
            raise CollectionError(
                f"the collection holds no image {name!r}",
                expected="the id of an image",
                actual=repr(name),
                fix=did_you_mean(str(name), view.stamps, "`list(collection)` gives the ids"),
            )
        return next(view.records([name]))

    def __repr__(self) -> str:
        return f"<Collection {to_url(self.path)}: {len(self.view()):,} images, recipe {self.recipe.name}>"

    def _repr_html_(self) -> str:
        from resight.collection.answer_pictures import collection_to_html

        view = self.view()
        first = list(islice(view.stamps, THUMBNAILS))
        records = view.records(first) if first else iter(())
        notes = [f"recipe {self.recipe.name}", to_url(self.path)]
        return collection_to_html(f"{self.path.name}: {len(view):,} images", records, len(view), notes)

    @overload
    def search(
        self,
        image: list[Any] | tuple[Any, ...],
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: "Near | None" = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> "list[Hits]": ...

    @overload
    def search(
        self,
        image: Iterator[Any],
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: "Near | None" = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> "Iterator[Hits]": ...

    @overload
    def search(
        self,
        image: "ImageInput | StoredImage | Query",
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: "Near | None" = None,
    ) -> "Hits": ...

    def search(
        self,
        image: Any,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: "Near | None" = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> Any:
        """Find the images that show the same object as the query.

        A text is an address if it begins with http://, https://, s3:// or another scheme; otherwise the path of a file,
        and where there is no such file, the id of a stored image.

        Args:
            image: A path, an address, a stored id, an ImageRef, a PIL image, an array or tensor, bytes of an image
                file, a file object, a Picture of `load_image`, or a Query of `encode_query`. A list, tuple, iterator or
                4-dimensional array of these is a batch, which is searched faster than one by one.
            k: The number of hits; fewer if fewer images meet the filters.
            box: The part of the query to look for: x0, y0, x1, y1 in pixels of the upright original.
            where: Conditions on attributes, such as "label=gate" or "year>=1900"; a hit meets all of them.
            near: Latitude, longitude and a radius in metres.
            errors: For a batch: "raise" ends it at an image that cannot be read; "return" puts the error in the place
                of its result.
            progress: For a batch: True shows a bar in a notebook, False none; or a function, called with the number of
                images done and in all (0: not known).

        Returns:
            The hits, best first. For a batch a list of such lists; for an iterator an iterator over them.

        Raises:
            ImageError: The query cannot be decoded.
            BoxError: The box lies outside the query, or is smaller than 8 pixels.
            InputError: `k` is below 1, or a filter cannot be read.

        Examples:
            >>> import resight
            >>> from PIL import Image
            >>> photos = resight.open("photos.resight")
            >>> photos.search(Image.open("query.jpg"), k=1)[0].id
            'eiffel-2.png'
            >>> [hits[0].id for hits in photos.search(["query.jpg", "castle.png"], k=1)]  # a file, and a stored id
            ['eiffel-2.png', 'castle.png']
        """
        from resight.collection.hits import Hits, list_alone

        answers = self.ask(image, k, box=box, where=where, near=near, errors=errors, progress=progress)
        if isinstance(answers, list):
            return [list_alone(answer) for answer in answers]
        return map(list_alone, answers) if isinstance(answers, Iterator) else Hits(answers.hits)

    @overload
    def ask(
        self,
        image: list[Any] | tuple[Any, ...],
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: "Near | None" = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> "list[Answer]": ...

    @overload
    def ask(
        self,
        image: Iterator[Any],
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: "Near | None" = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> "Iterator[Answer]": ...

    @overload
    def ask(
        self,
        image: "ImageInput | StoredImage | Query",
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: "Near | None" = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> "Answer": ...

    def ask(
        self,
        image: Any,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: "Near | None" = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> Any:
        """Search, and return the ranking, the matches and the evidence too. Takes the same arguments as `search`.

        Returns:
            The answer; its `explain` shows why an image was found. For a batch as many answers, as `search` has hits.
        """
        from resight.search.request import SearchRequest  # nothing else here needs it

        if isinstance(image, Iterable) or hasattr(image, "shape"):
            from resight.data.image_inputs import is_batch

            if is_batch(image):
                request = SearchRequest.parse("", k, box=box, where=where, near=near)
                answers = self._ask_all(image, request, errors, progress)
                return list(answers) if hasattr(image, "__len__") else answers
        view, request = self.view(), SearchRequest.parse(image, k, box=box, where=where, near=near)
        return view.ask(request.with_query(self._encode(view, request)))

    def _ask_all(
        self, images: Any, request: "SearchRequest", errors: Errors, progress: Progress | bool
    ) -> "Iterator[Answer | ResightError]":
        from resight.collection.batch_search import search_batch
        from resight.progress import follow

        total = len(images) if hasattr(images, "__len__") else 0
        with follow(progress, "searching") as shown:
            yield from search_batch(self.view(), self._encoding, images, request, errors, shown, total)

    def ask_batch(
        self, images: Sequence[Any], request: "SearchRequest", progress: Progress | None = None
    ) -> "Iterator[Answer | ResightError]":
        """`request` for each image, in place of its own; an error stands in the place of its answer."""
        from resight.collection.batch_search import search_batch

        return search_batch(self.view(), self._encoding, images, request, "return", progress, len(images))

    def encode_query(self, image: "ImageInput", box: Box | None = None) -> Query:
        """Encode an image once, to search for it several times.

        Args:
            image: One image, in any form that `search` takes.
            box: The part to look for, as for `search`.

        Returns:
            The query, for `search` and `ask`.
        """
        from resight.search.request import SearchRequest

        return self._encode(self.view(), SearchRequest(image, box=box))

    def _encode(self, view: "View", request: "SearchRequest") -> Query:
        """The query, which remembers its image to draw it."""
        from resight.search.request import StoredImage

        found = view.find_image(request.image)
        if not isinstance(found, (Query, StoredImage)):
            found = self._encoding.read_query(found, request.box)
        return keep_picture(view.encode_query(replace(request, image=found)), found)

    def search_vectors(
        self, vectors: Any, k: int = 10, *, where: Sequence[str] = (), near: "Near | None" = None
    ) -> "Hits | list[Hits]":
        """Search by vectors that you have computed, in a collection that takes `add_vectors`.

        Args:
            vectors: [D]; for tokens [k, D]. One dimension more, or a list, is a batch.
            k: The number of hits.
            where: Conditions on attributes, as for `search`.
            near: Latitude, longitude and a radius in metres.

        Returns:
            The hits, best first; for a batch a list of such lists.
        """
        from resight.collection.own_vectors import RowChecker, make_queries

        view = self.view()
        queries = make_queries(RowChecker(view.recipe.branches, view.layout, self.metadata.spaces), vectors)
        if isinstance(queries, Query):
            return self.search(queries, k, where=where, near=near)
        return self.search(list(queries), k, where=where, near=near)

    @property
    def query_side(self) -> int | None:
        """The side to which a decoder may reduce the picture of a query without a box; None: it may not."""
        return self._encoding.query_side
