"""The page of the HTTP API: every address, its parameters and answers, from the service's own OpenAPI description."""

import json
from typing import Any

from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings

METHODS = ("get", "post", "put", "patch", "delete")


def write_page() -> str:
    description = create_app(ServiceSettings(collections={})).openapi()
    parts = [
        "# HTTP API\n",
        "Generated from the description that the service publishes at `/api/openapi.json`. "
        "[The HTTP API](../guides/http-api.md) shows how to use it.\n",
        "| Request | Job |",
        "|---|---|",
    ]
    operations = [
        (method, path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    ]
    parts += [
        f"| [`{method.upper()} {path}`](#{_anchor(method, path)}) | {_summary(operation)} |"
        for method, path, operation in operations
    ]
    parts.append("")
    parts += [_describe(*operation) for operation in operations]
    parts.append("## Shapes\n")
    for name, schema in sorted(description["components"]["schemas"].items()):
        parts.append(_describe_shape(name, schema))
    return "\n".join(parts)


def _describe(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"## `{method.upper()} {path}` {{ #{_anchor(method, path)} }}\n", f"{operation.get('description', '')}\n"]
    rows = [
        _row(
            each["name"],
            each["schema"],
            each.get("required", False),
            each.get("description", ""),
            f"in the {each['in']}",
        )
        for each in operation.get("parameters", ())
    ]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body: `{kind}`, {_type(content['schema'])}.\n")
    if rows:
        parts += ["| Parameter | Type | Meaning |", "|---|---|---|", *rows, ""]
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            kinds = [f"`{kind}`{_answer_type(content)}" for kind, content in answer.get("content", {}).items()]
            parts.append(f"Answer {status}: {'; '.join(kinds) or answer['description']}.\n")
            parts += [
                _show_example(content["example"]) for content in answer["content"].values() if "example" in content
            ]
    return "\n".join(parts)


def _show_example(example: Any) -> str:
    """Folded, below the operation."""
    is_text = isinstance(example, str)
    lines = (example if is_text else json.dumps(example, indent=2, ensure_ascii=False)).splitlines()
    block = [f"```{'text' if is_text else 'json'}", *lines, "```"]
    return "\n".join(['??? example "Example"', "", *(f"    {line}".rstrip() for line in block), ""])


def _describe_shape(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = [
        _row(field, each, field in required, each.get("description", ""))
        for field, each in schema.get("properties", {}).items()
    ]
    text = " ".join(schema.get("description", "").split())
    return "\n".join(
        [f"### {name} {{ #{name.lower()} }}\n", f"{text}\n", "| Field | Type | Meaning |", "|---|---|---|", *rows, ""]
    )


def _row(name: str, schema: dict[str, Any], required: bool, meaning: str, where: str = "") -> str:
    notes = [part for part in (meaning.strip(), where, "required" if required and where else "") if part]
    return f"| `{name}` | {_type(schema)} | {_cell('; '.join(notes))} |"


def _type(schema: dict[str, Any]) -> str:
    """A schema in words, with a link to each shape that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items') or schema.get('prefixItems', [{}])[0])}"
    if schema.get("contentMediaType") or schema.get("format") == "binary":
        return "file"
    return str(schema.get("const") or schema.get("type", "any"))


def _answer_type(content: dict[str, Any]) -> str:
    schema = content.get("schema") or {}
    return f", {_type(schema)}" if schema else ""


def _summary(operation: dict[str, Any]) -> str:
    return _cell(operation.get("description", "").split("\n\n")[0] or operation.get("summary", ""))


def _anchor(method: str, path: str) -> str:
    return f"{method}{path}".replace("/", "-").replace("{", "").replace("}", "").replace(".", "-")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
