"""The files of deploy/ and the guide about them: their commands, routes, metrics and versions exist, and agree."""

import ast
import ipaddress
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import click
import pytest
import typer
import yaml
from fastapi.testclient import TestClient

from resight.apps.cli import app
from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
GUIDE = ROOT / "docs" / "guides" / "operating.md"
OTHERS = ("kubectl", "install", "useradd", "curl", "systemctl", "python3")  # programs whose words may be "resight" too
BLOCK = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
METRIC = re.compile(r"\bresight_\w+")


def read_yaml(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


def read_stages() -> list[str]:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return re.split(r"^FROM ", text, flags=re.M)[1:]


def read_words(instruction: str) -> list[str]:
    """A list of the last stage of the Dockerfile, such as CMD."""
    (found,) = re.findall(rf"^{instruction} (\[.*\])$", read_stages()[-1], re.M)
    words: list[str] = ast.literal_eval(found)
    return words


def read_units() -> Iterator[tuple[str, str]]:
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("ExecStart="):
                yield path.name, line.partition("=")[2]


def read_pod() -> Any:
    return read_yaml("kubernetes/statefulset.yaml")["spec"]["template"]["spec"]


def list_commands() -> Iterator[tuple[str, list[str]]]:
    """Where each command stands, and its words after `resight`."""
    yield "Dockerfile", read_words("CMD")
    yield "compose.yaml", read_yaml("compose/compose.yaml")["services"]["resight"]["command"]
    yield "statefulset.yaml", read_pod()["containers"][0]["args"]
    lines = list(read_units())
    guide = GUIDE.read_text(encoding="utf-8")
    lines += [(GUIDE.name, line) for block in BLOCK.findall(guide) for line in block.splitlines()]
    lines += [(GUIDE.name, line) for line in re.findall(r"`(resight [^`]+)`", guide)]
    settings = (DEPLOY / "monitoring" / "prometheus.yml").read_text(encoding="utf-8")
    lines += [("prometheus.yml", line) for line in re.findall(r"^#.*: (resight .*)$", settings, re.M)]
    for where, line in lines:
        yield from ((where, words) for words in find_calls(line))


def find_calls(line: str) -> Iterator[list[str]]:
    words = shlex.split(line)
    if words[:1] == ["/bin/sh"]:
        words = shlex.split(words[-1])
    if words[:3] == ["docker", "compose", "exec"]:  # the first one is the name of the container
        words = words[words.index("resight") + 1 :]
    if not words or words[0] in OTHERS:
        return
    for place, word in enumerate(words[:-1]):
        is_program = PurePosixPath(word).name == "resight"
        if is_program and re.fullmatch(r"[a-z]+", words[place + 1]) and words[place + 1] != "resight":
            yield words[place + 1 :]
            return


@pytest.mark.parametrize(("where", "words"), list(list_commands()), ids=str)
def test_every_command_and_option_exists(where: str, words: list[str]) -> None:
    del where
    found: Any = typer.main.get_command(app)
    context = click.Context(found, info_name="resight")
    rest = [word.strip('"') for word in words]
    while hasattr(found, "get_command"):
        name = rest.pop(0)
        found = found.get_command(context, name)
        assert found is not None, f"there is no command {name}"
    known = {name for parameter in found.params for name in parameter.opts}
    given = {word.partition("=")[0] for word in rest if word.startswith("-")}
    assert given <= known, f"there is no option {given - known}"


def test_options_that_the_guide_names_in_its_text_exist() -> None:
    group: Any = typer.main.get_command(app)
    context = click.Context(group, info_name="resight")
    commands = [group.get_command(context, "serve"), group.get_command(context, "keys").get_command(context, "make")]
    known = {name for command in commands for parameter in command.params for name in parameter.opts}
    named = set(re.findall(r"`(--[a-z-]+)", GUIDE.read_text(encoding="utf-8")))
    assert len(named) >= 10 and named <= known, named - known


def test_the_commands_of_the_files_are_found() -> None:
    found = [(where, words[0]) for where, words in list_commands()]
    assert found.count(("Dockerfile", "serve")) == found.count(("resight.service", "serve")) == 1
    assert {"index", "keys", "backup", "restore", "verify", "upgrade"} <= {name for where, name in found}
    assert ("resight-backup.service", "backup") in found and ("prometheus.yml", "keys") in found


@pytest.mark.parametrize("line", ["docker compose exec resight resight backpu a b", "resight serve a --worker 2"])
def test_a_wrong_word_is_noticed(line: str) -> None:
    (words,) = find_calls(line)
    with pytest.raises(AssertionError, match="there is no"):
        test_every_command_and_option_exists("", words)


def test_health_checks_ask_a_route_that_exists() -> None:
    paths = create_app(ServiceSettings(collections={})).openapi()["paths"]
    container = read_pod()["containers"][0]
    probes = [container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")]
    check = read_stages()[-1].partition("HEALTHCHECK")[2]
    probes += re.findall(r"127\.0\.0\.1:8080(/[\w/]+)", check)
    scraped = read_yaml("monitoring/prometheus.yml")["scrape_configs"][0]["metrics_path"]
    assert len(probes) == 4 and {*probes, scraped} <= paths.keys()


def test_the_dashboard_and_the_alerts_use_metrics_that_a_service_exports() -> None:
    with TestClient(create_app(ServiceSettings(collections={})), "http://localhost") as client:
        client.get("/api/health")
        exported = set(METRIC.findall(client.get("/metrics").text))
    board = json.loads((DEPLOY / "monitoring" / "grafana-dashboard.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += [one["query"] for one in board["templating"]["list"]]
    queries += [rule["expr"] for group in read_yaml("monitoring/alerts.yml")["groups"] for rule in group["rules"]]
    used = {name for query in queries for name in METRIC.findall(query)}
    assert len(used) >= 8 and used <= exported, used - exported
    named = set(METRIC.findall(GUIDE.read_text(encoding="utf-8")))
    assert named <= {name.removesuffix("_bucket") for name in exported} | exported
    boxes = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(boxes)) == len(boxes) and len({panel["id"] for panel in board["panels"]}) == len(boxes)


def test_the_last_stage_has_no_compiler_and_no_rights() -> None:
    build, last = read_stages()
    assert "gcc" in build and not re.search(r"gcc|apt-get|pip install", last)
    assert re.search(r"^USER 10001:10001$", last, re.M) and re.search(r"^VOLUME /data$", last, re.M)
    assert read_words("ENTRYPOINT") == ["resight"]


def test_images_are_pinned_and_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    services = read_yaml("compose/compose.yaml")["services"]
    tags = {one["image"].rpartition(":")[2] for one in services.values()}
    assert all(re.match(r"\d+\.\d+\.\d+", tag) for tag in tags)
    assert services["resight"]["image"] == f"resight:{version}"
    assert read_yaml("kubernetes/kustomization.yaml")["images"][0]["newTag"] == version
    assert re.search(r"^ARG PYTHON=\d+\.\d+\.\d+-slim", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.M)


def test_the_containers_can_write_only_to_their_volumes() -> None:
    services = read_yaml("compose/compose.yaml")["services"]
    for one in services.values():
        assert one["read_only"] and one["cap_drop"] == ["ALL"] and "no-new-privileges:true" in one["security_opt"]
    assert [volume.rpartition(":")[2] for volume in services["resight"]["volumes"]] == ["/data", "ro"]
    pod = read_pod()
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    for one in (*pod["initContainers"], *pod["containers"]):
        assert one["securityContext"]["readOnlyRootFilesystem"] and one["resources"]["limits"].keys() >= {
            "cpu",
            "memory",
        }
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_proxy_is_the_one_that_the_service_trusts_and_lets_uploads_pass() -> None:
    made = read_yaml("compose/compose.yaml")
    words = made["services"]["resight"]["command"]
    trusted = words[words.index("--trusted-proxy") + 1]
    inside = made["services"]["proxy"]["networks"]["inside"]["ipv4_address"]
    (network,) = made["networks"]["inside"]["ipam"]["config"]
    assert trusted == inside and ipaddress.ip_address(inside) in ipaddress.ip_network(network["subnet"])
    passed = re.search(r"max_size (\d+)MB", (DEPLOY / "compose" / "Caddyfile").read_text(encoding="utf-8"))
    assert passed and int(passed[1]) * 10**6 < ServiceSettings({}).max_upload_bytes + 2**20 <= 33 * 2**20


def test_nothing_is_stopped_before_it_has_finished() -> None:
    grace = ServiceSettings({}).grace
    assert read_pod()["terminationGracePeriodSeconds"] > 2 * grace
    assert (
        int(read_yaml("compose/compose.yaml")["services"]["resight"]["stop_grace_period"].removesuffix("s")) > 2 * grace
    )
    unit = (DEPLOY / "systemd" / "resight.service").read_text(encoding="utf-8")
    stop = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M)
    assert stop and int(stop[1]) > 2 * grace
