"""What clients of the HTTP API rely on, one fact per line: operations, parameters, fields and types.

In: an OpenAPI description. Out: sorted lines such as "POST /api/search takes k: integer 1..1000". They leave out texts,
and how different versions of FastAPI write the same thing.
"""

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
BOUNDS = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))


def list_facts(description: Json) -> list[str]:
    schemas = description["components"]["schemas"]
    facts = {
        f"{method.upper()} {path} {fact}"
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        for fact in list_operation(operation, schemas)
    }
    used = {name for operation in list_operations(description) for name in find_answers(operation, schemas)}
    facts |= {f"{name}.{field}: {kind}" for name in used for field, kind in list_fields(schemas[name])}
    return sorted(facts)


def list_operations(description: Json) -> Iterator[Json]:
    for methods in description["paths"].values():
        yield from methods.values()


def list_operation(operation: Json, schemas: Json) -> Iterator[str]:
    yield f"is {operation['operationId']}"
    for one in operation.get("parameters", ()):
        need = " required" if one.get("required") else ""
        yield f"takes {one['name']} in {one['in']}: {name_type(one['schema'])}{need}"
    body = operation.get("requestBody", {})
    for kind, content in body.get("content", {}).items():
        schema = resolve(content["schema"], schemas)
        for name, field in schema["properties"].items():
            need = " required" if name in schema.get("required", ()) else ""
            yield f"takes {name} in {kind}: {name_type(field)}{need}"
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            for kind, content in answer.get("content", {}).items():
                yield f"answers {status} {kind} {name_type(content.get('schema', {}))}".rstrip()


def find_answers(operation: Json, schemas: Json) -> set[str]:
    """The names of the schemas in the answers, and of those that these name."""
    waiting = list(find_references(operation["responses"]))
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += find_references(schemas[name])
    return found


def find_references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for one in value.values():
            yield from find_references(one)
    elif isinstance(value, list):
        for one in value:
            yield from find_references(one)


def list_fields(schema: Json) -> Iterator[tuple[str, str]]:
    for name, field in schema.get("properties", {}).items():
        yield name, name_type(field) + (" always" if name in schema.get("required", ()) else "")


def name_type(schema: Json) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " | ".join(sorted(map(name_type, schema["anyOf"])))
    if "const" in schema or "enum" in schema:
        return " | ".join(repr(value) for value in schema.get("enum", [schema.get("const")]))
    if "contentMediaType" in schema or schema.get("format") == "binary":
        return "file"
    kind = schema.get("type", "any")
    if kind == "array":
        inner = [name_type(one) for one in schema.get("prefixItems", [schema.get("items", {})])]
        kind = f"[{', '.join(inner)}]" + ("" if "prefixItems" in schema else "…")
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        kind = f"{{{name_type(schema['additionalProperties'])}}}"
    return f"{kind}{name_bounds(schema)}"


def name_bounds(schema: Json) -> str:
    for low, high in BOUNDS:
        if "prefixItems" not in schema and (low in schema or high in schema):
            return f" {_show(schema.get(low))}..{_show(schema.get(high))}"
    return ""


def resolve(schema: Json, schemas: Json) -> Json:
    found: Json = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found


def _show(bound: float | None) -> str:
    return "" if bound is None else f"{bound:g}"
