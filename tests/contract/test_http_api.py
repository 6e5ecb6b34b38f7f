"""The HTTP API as clients see it: a valid description, examples that fit, and nothing that changes unnoticed.

`RESIGHT_RECORD=1 python -m pytest tests/contract/test_http_api.py` records the facts after a change that was meant.
"""

import os
from pathlib import Path
from typing import Any

import jsonschema
import openapi_spec_validator
import pytest
from support.http_facts import list_facts, list_operations

from resight.apps.service.api_keys import make_key
from resight.apps.service.app import create_app
from resight.apps.service.auth import COOKIE
from resight.apps.service.settings import ServiceSettings

RECORD = Path(__file__).parent / "http_api.txt"
OPEN = {"/api/health", "/api/session"}
WITHOUT_EXAMPLE = {"read_mosaic", "read_image_file", "read_pair_image"}  # they answer with a picture


def describe(**settings: Any) -> dict[str, Any]:
    return create_app(ServiceSettings(collections={}, **settings)).openapi()


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return describe(keys=(make_key("curator", "k" * 20),))


def test_it_is_valid_openapi(description: dict[str, Any]) -> None:
    openapi_spec_validator.validate(description)


def test_clients_can_rely_on_what_was_recorded(description: dict[str, Any]) -> None:
    facts = list_facts(description)
    if os.environ.get("RESIGHT_RECORD"):
        RECORD.write_text("".join(f"{fact}\n" for fact in facts), encoding="utf-8")
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    gone = [f"- {fact}" for fact in recorded if fact not in facts]
    new = [f"+ {fact}" for fact in facts if fact not in recorded]
    assert not gone, "this breaks clients; keep it, or record it and say so in CHANGELOG.md:\n" + "\n".join(gone + new)
    assert not new, "record what is new:\n" + "\n".join(new)


def test_facts_tell_a_change_that_breaks_clients(description: dict[str, Any]) -> None:
    before = set(list_facts(description))
    changed = describe()
    changed["components"]["schemas"]["SearchFields"]["properties"]["k"]["maximum"] = 10
    changed["components"]["schemas"]["Hit"]["properties"].pop("box")
    del changed["paths"]["/api/why"]
    lost = before - set(list_facts(changed))
    assert "POST /api/search takes k in multipart/form-data: integer 1..1000" in lost
    assert "Hit.box: [number, number, number, number] | null always" in lost
    assert "POST /api/why is explain" in lost


def test_an_operation_has_a_short_id_of_its_own(description: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operation in list_operations(description)]
    assert len(set(ids)) == len(ids)
    assert all(id.isidentifier() and "api" not in id for id in ids)


def test_each_operation_states_its_access(description: dict[str, Any]) -> None:
    schemes = description["components"]["securitySchemes"]
    assert schemes["bearer"]["scheme"] == "bearer"
    assert (schemes["header"]["name"], schemes["session"]["name"]) == ("X-API-Key", COOKIE)
    for path, methods in description["paths"].items():
        for operation in methods.values():
            assert ({} in operation["security"]) == (path in OPEN)
            assert [name for one in operation["security"] for name in one] == list(schemes)
    assert all({} in operation["security"] for operation in list_operations(describe()))


def test_forms_and_parameters_take_no_null(description: dict[str, Any]) -> None:
    fields = description["components"]["schemas"]["SearchFields"]["properties"]
    assert "anyOf" not in str(fields)
    assert (fields["box"]["type"], fields["box"]["maxLength"]) == ("string", 200)
    assert "null" in str(description["components"]["schemas"]["Hit"])


def test_each_operation_has_examples_that_fit_its_schema(description: dict[str, Any]) -> None:
    tried = 0
    for operation in list_operations(description):
        if operation["operationId"] in WITHOUT_EXAMPLE:
            continue
        (answer,) = (one for status, one in operation["responses"].items() if status.startswith("2"))
        for kind, content in answer["content"].items():
            assert "example" in content, operation["operationId"]
            if kind == "application/json":
                check(content["example"], content["schema"], description)
                tried += 1
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            assert "example" in content, operation["operationId"]
            if kind == "application/json":
                check(content["example"], content["schema"], description)
    assert tried >= 30


def test_what_must_be_sent_is_in_the_example(description: dict[str, Any]) -> None:
    for operation in list_operations(description):
        required = [one for one in operation.get("parameters", ()) if one.get("required")]
        assert all("example" in one for one in required), operation["operationId"]
        for one in operation.get("parameters", ()):
            if "example" in one:
                check(one["example"], one["schema"], description)


def check(example: Any, schema: dict[str, Any], description: dict[str, Any]) -> None:
    whole = {**schema, "components": description["components"]}
    jsonschema.validate(example, whole, cls=jsonschema.Draft202012Validator)
