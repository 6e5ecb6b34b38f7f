from dataclasses import replace
from pathlib import Path

from resight.apps.service.api_keys import make_key
from resight.apps.service.settings import ServiceSettings, read_settings, write_settings


def test_settings_survive_the_way_through_an_environment_variable() -> None:
    settings = ServiceSettings(
        {"a": Path("/x/a.resight"), "b": Path("/x/b.resight")},
        keys=(replace(make_key("anna", "k" * 20, may_write=False), collections=("a",), expires=9.0),),
        workers=3,
        reports=Path("/x/reports"),
        training=Path("/x/training"),
        reviews=(Path("/x/review"),),
        cors=("https://example.org",),
        allow_hosts=("photos",),
        trusted_proxies=("10.0.0.0/8",),
        tls_cert=Path("/x/cert.pem"),
        tls_key=Path("/x/key.pem"),
        audit_log=Path("/x/audit.jsonl"),
        mosaic=Path("/x/moon.webp"),
        mosaic_bounds=(-180.0, -90.0, 180.0, 90.0),
    )
    assert read_settings(write_settings(settings)) == settings
    assert "k" * 20 not in write_settings(settings)


def test_slots_hold_those_who_search_and_those_who_wait() -> None:
    assert ServiceSettings({"a": Path("a")}, workers=2).slots == 18
    assert ServiceSettings({"a": Path("a")}, workers=2, waiting=0).slots == 2
    assert ServiceSettings({"a": Path("a"), "b": Path("b")}).default == "a"
