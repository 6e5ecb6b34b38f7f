"""The OpenAPI description: FastAPI's own, completed with what FastAPI cannot derive.

In: the description that FastAPI builds from the routes. Out: the same with access schemes, the meaning of the tags, and
an example of each operation. `examples.json` holds the examples, which `scripts/record_api_examples.py` records from a
running service. Forms and query parameters carry no null, so their fields lose that alternative.
"""

import copy
import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

from fastapi.routing import APIRoute

from resight.apps.service.auth import COOKIE, LIFETIME, OPEN
from resight.apps.service.serializers import JsonObject

METHODS = ("get", "post", "put", "delete")
FORM, JSON = "multipart/form-data", "application/json"
SCHEMES: dict[str, JsonObject] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key of `resight keys make`."},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key in a header."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": f"What `POST /api/session` sets for the page; valid for {LIFETIME // 3600} hours.",
    },
}
TAGS = {
    "search": "Find images that show the same object, and why.",
    "images": "Read what the collection holds.",
    "adding": "Add, change and delete images; follow the jobs that do so.",
    "collections": "The collections that are served, and what their images can be filtered by.",
    "reviews": "Vote on pairs of images.",
    "reports": "Pages of `resight eval`.",
    "trainings": "Curves of `resight train`.",
    "session": "The page's sign-in. Programs send their key with each request instead.",
    "service": "Health and metrics.",
}


def name_operation(route: APIRoute) -> str:
    """The id of an operation is the name of its function."""
    return route.name


def complete(description: JsonObject, needs_key: bool) -> JsonObject:
    """`needs_key`: the service has keys; without any, each operation is open."""
    examples = json.loads((resources.files("resight.apps.service") / "examples.json").read_text(encoding="utf-8"))
    completed: JsonObject = copy.deepcopy(description)
    schemas = completed["components"]["schemas"]
    for name, path, operation in list_operations(completed):
        _drop_null(operation, schemas)
        _add_security(operation, path, needs_key)
        _add_example(operation, examples.get(name, {}))
    completed["components"]["securitySchemes"] = SCHEMES
    completed["tags"] = [{"name": name, "description": meaning} for name, meaning in TAGS.items()]
    schemas["Error"]["example"] = examples["error"]
    return completed


def list_operations(description: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """The id, the path and the description of each operation."""
    for path, methods in description["paths"].items():
        for method in METHODS:
            if method in methods:
                yield methods[method]["operationId"], path, methods[method]


def _add_security(operation: JsonObject, path: str, needs_key: bool) -> None:
    """One of the schemes; none is needed where the service is open, and for the addresses that always are."""
    free: list[dict[str, list[str]]] = [] if needs_key and path not in OPEN else [{}]
    operation["security"] = [*free, *({name: []} for name in SCHEMES)]


def _drop_null(operation: JsonObject, schemas: JsonObject) -> None:
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
    form = operation.get("requestBody", {}).get("content", {}).get(FORM)
    if form is not None:
        fields = schemas[form["schema"]["$ref"].rpartition("/")[2]]["properties"]
        fields.update({name: _without_null(field) for name, field in fields.items()})


def _without_null(schema: JsonObject) -> JsonObject:
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    if len(kinds) != 1:
        return schema
    return {**kinds[0], **{name: value for name, value in schema.items() if name != "anyOf"}}


def _add_example(operation: JsonObject, example: JsonObject) -> None:
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in example.get("parameters", {}):
            parameter["example"] = example["parameters"][parameter["name"]]
    if "body" in example:
        for content in operation["requestBody"]["content"].values():
            content["example"] = example["body"]
    if "answer" in example:
        _find_answer(operation)["example"] = example["answer"]


def _find_answer(operation: JsonObject) -> dict[str, Any]:
    """The content of the successful answer."""
    (status,) = (status for status in operation["responses"] if status.startswith("2"))
    content: dict[str, Any] = next(iter(operation["responses"][status]["content"].values()))
    return content
