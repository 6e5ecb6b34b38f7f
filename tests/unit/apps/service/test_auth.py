import asyncio
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from resight.apps.service import auth
from resight.apps.service.api_keys import Caller, make_key
from resight.apps.service.auth import HostCheck, check_origin
from resight.apps.service.error_responses import ApiError
from resight.apps.service.rate_limit import KeyGuard
from resight.apps.service.settings import ServiceSettings

LONG = "k" * 20
OPEN = ServiceSettings({"a": Path("a")}, allow_hosts=("photos.lan",))
KEYED = ServiceSettings({"a": Path("a")}, keys=(make_key("anna", LONG), make_key("ben", "b" * 20, may_write=False)))


def connect(**headers: str) -> HTTPConnection:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return HTTPConnection({"type": "http", "headers": raw})


def identify(connection: HTTPConnection, settings: ServiceSettings) -> Caller | None:
    return auth.identify(connection, settings, KeyGuard(settings.keys))


def check_host(host: str, settings: ServiceSettings) -> None:
    asyncio.run(HostCheck(settings).check(connect(host=host).scope))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]:8080", "photos.lan"]
)
def test_names_of_this_machine_pass(host: str) -> None:
    check_host(host, OPEN)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "photos.lan.evil", "localhost@evil"])
def test_another_name_is_refused_where_there_is_no_key(host: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_host(host, OPEN)
    assert caught.value.status == 403
    check_host(host, KEYED)


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:9", "http://127.0.0.1:8080.evil", "http://["]
)
def test_a_page_of_another_site_may_read_nothing_and_send_nothing(origin: str) -> None:
    headers = Headers({"host": "127.0.0.1:8080", "origin": origin})
    check_origin("GET", headers, OPEN)  # it is the browser that keeps the answer from the page
    with pytest.raises(ApiError):
        check_origin("POST", headers, OPEN)


def test_the_own_page_programs_and_chosen_sites_may_send() -> None:
    check_origin("POST", Headers({"host": "127.0.0.1:8080", "origin": "http://127.0.0.1:8080"}), OPEN)
    check_origin("DELETE", Headers({"host": "127.0.0.1:8080"}), OPEN)
    chosen = ServiceSettings({"a": Path("a")}, cors=("https://shop.example",))
    check_origin("POST", Headers({"host": "127.0.0.1:8080", "origin": "https://shop.example"}), chosen)


def test_a_key_says_who_asks_and_what_they_may() -> None:
    assert identify(connect(authorization=f"Bearer {LONG}"), KEYED) == Caller("anna", True)
    assert identify(connect(x_api_key="b" * 20), KEYED) == Caller("ben", False)
    for wrong in (
        {},
        {"authorization": "Bearer nobody"},
        {"authorization": f"Basic {LONG}"},
        {"x_api_key": LONG + "k"},
    ):
        assert identify(connect(**wrong), KEYED) is None


def test_a_session_says_who_asks() -> None:
    cookie = auth.sign_session(KEYED.keys[0], KEYED.secret)
    assert identify(connect(cookie=f"{auth.COOKIE}={cookie}"), KEYED) == Caller("anna", True)
    assert identify(connect(cookie=f"{auth.COOKIE}={cookie}x"), KEYED) is None


def test_nobody_may_write_where_the_service_is_read_only() -> None:
    read_only = ServiceSettings({"a": Path("a")}, keys=KEYED.keys, read_only=True)
    assert identify(connect(x_api_key=LONG), read_only) == Caller("anna", False)
    assert identify(connect(), ServiceSettings({"a": Path("a")}, read_only=True)) == Caller("", False)


def test_with_keys_every_site_may_be_allowed() -> None:
    headers = Headers({"host": "photos.example", "origin": "https://anywhere.example"})
    check_origin("POST", headers, ServiceSettings({"a": Path("a")}, keys=KEYED.keys, cors=("*",)))
