"""Source ranges a token may be used from."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network


def parse_networks(ranges: Iterable[str]) -> tuple[Network, ...]:
    """Read address ranges such as ``10.4.0.0/16`` or ``2001:db8::7``; a bare address is a range of one.

    Raises ``ValueError`` with one sentence for the first entry that is no range; host bits that are set are
    refused rather than cut off, since they are mostly a slip of the pen.
    """
    networks = []
    for entry in ranges:
        try:
            networks.append(ip_network(entry.strip()))
        except ValueError as error:
            raise ValueError(f"{entry.strip()!r} is not an address range such as 10.4.0.0/16.") from error
    return tuple(networks)


def _address(text: str) -> IPv4Address | IPv6Address:
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address  # a dual-stack socket reports ::ffff:10.4.0.9 for 10.4.0.9


def caller_of(address: str) -> str:
    """Return what tries from an address are counted under: of IPv6 its /64, for one host has all of that."""
    try:
        found = _address(address)
    except ValueError:
        return address
    return str(found) if found.version == 4 else str(ip_network((int(found), 64), strict=False))


def only(address: str) -> tuple[str, ...]:
    """Return the range of one address; none for what is no address, as a socket of this host gives."""
    try:
        return (str(ip_network(_address(address))),)
    except ValueError:
        return ()


def is_allowed(address: str, networks: Iterable[Network]) -> bool:
    """Say whether an address lies in one of the ranges; no ranges means anywhere.

    An address that cannot be read is allowed only where no ranges are set.
    """
    ranges = tuple(networks)
    if not ranges:
        return True
    try:
        source = _address(address)
    except ValueError:
        return False
    return any(source in network for network in ranges if network.version == source.version)
