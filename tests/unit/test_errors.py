"""What errors say to do about a missing package."""

import tomllib
from pathlib import Path

import pytest

from resight import errors, plugins
from resight.errors import install_extra

ROOT = Path(__file__).resolve().parents[2]


def test_a_checkout_is_installed_from_its_folder() -> None:
    assert install_extra("ray") == f"pip install -e '{ROOT}[ray]'"


def test_an_installed_package_is_completed_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "lib" / "site-packages" / "resight" / "errors.py"))
    assert install_extra("ray") == "pip install 'resight[ray]'"


def test_every_extra_that_an_error_names_exists_and_brings_its_packages() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extra, modules in plugins.EXTRAS.items():
        brought = " ".join(extras[extra]).replace("-", "_")
        assert [module for module in modules if module not in brought] == [], extra
