"""Addresses of clients: which belong together, which are of this machine, and which are trusted proxies.

A proxy in front of the service is named by `--trusted-proxy`. Only then does the service believe its X-Forwarded-For
header, so that limits apply to each client behind the proxy and not to all of them together.
"""

import ipaddress
from collections.abc import Sequence

from resight.errors import InputError

PREFIX = 64  # bits of an IPv6 address: a provider gives each customer at least one such network


def group_address(address: str) -> str:
    """The address that limits are counted for: of IPv6 the network, since a client has all of its addresses."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, PREFIX), strict=False))


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def is_within(address: str, networks: Sequence[str]) -> bool:
    """Whether an address lies in one of the networks, such as "10.0.0.0/8"."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in ipaddress.ip_network(network) for network in networks)


def check_networks(networks: Sequence[str]) -> None:
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise InputError(
                f"--trusted-proxy {network!r} is not a network",
                expected="an address such as 10.0.0.7, or a network such as 10.0.0.0/8",
                actual=str(error),
                fix="give the address from which the proxy connects",
            ) from error
