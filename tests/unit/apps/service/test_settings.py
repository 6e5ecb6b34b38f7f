import math
from dataclasses import replace
from pathlib import Path

import pytest

from resight.apps.service.api_keys import make_key
from resight.apps.service.settings import ServiceSettings, count_cores, read_cpu_limit, read_settings, write_settings


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


@pytest.mark.parametrize(
    ("limits", "cores"),
    [({"": "max 100000"}, math.inf), ({"": "150000 100000"}, 1.5), ({"a": "400000 100000", "a/b": "max 100000"}, 4.0)],
)
def test_the_limit_of_a_container_counts(limits: dict[str, str], cores: float, tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("1:name=systemd:/\n0::/a/b\n")
    for name, text in limits.items():
        folder = tmp_path / "sys/fs/cgroup" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpu.max").write_text(f"{text}\n")
    assert read_cpu_limit(tmp_path) == cores
    assert 1 <= count_cores(tmp_path) <= max(1, math.ceil(min(cores, count_cores(tmp_path / "none"))))
