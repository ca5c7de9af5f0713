"""GET over HTTP from the hosts that a connection allows: redirects checked, public addresses alone, bounded.

The connection's extra `hosts` lists them: `feeds.example.com`, `*.example.com`, or with a port `127.0.0.1:8000`.
`private_addresses` (default false) lets those hosts stand in a private network or on this machine.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from hooks.connections import Access
from include.errors import BadInput, Refused
from include.plain_text import shown_url

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

MOST_REDIRECTS = 5
CONNECT_SECONDS = 5.0
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_HEADER = 16_384
# Once the way into 6to4; Python takes it for public.
_RELAYS = IPv4Network("192.88.99.0/24")
# NAT64, and the compatible addresses of old.
_IPV4_AT_THE_END = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))


class PrivateAddressError(OSError):
    """A public name that leads into a private network."""


class AllowedHosts:
    """The hosts that one connection allows. `what` is how messages call the thing at a URL, such as feed.

    `given` are the hosts that are allowed where the connection names none.
    """

    def __init__(self, access: Access, what: str, given: Sequence[str] = ()) -> None:
        self._access = access
        self._what = what
        self.names = self._names() or frozenset(given)
        self._private = access.flag("private_addresses", default=False)

    def check(self, url: str, *, first: bool = True) -> None:
        """Raise BadInput for a URL that may not be asked; `first` is false for where a redirect leads."""
        shown = f"{self._what} {shown_url(url)[:200]!r}"
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").rstrip("."), parts.port
        except ValueError:
            raise BadInput(f"{shown}: is not a URL") from None
        usual = {"http": 80, "https": 443}.get(parts.scheme)
        if usual is None or not host or "@" in parts.netloc:
            raise BadInput(f"{shown}: is not an http(s) URL")
        named = host if port in (None, usual) else f"{host}:{port}"
        _, _, above = named.partition(".")
        if named not in self.names and f"*.{above}" not in self.names:
            came = "" if first else "redirected to "
            raise BadInput(
                f"{shown}: {came}{named} is not among the hosts of connection {self._access.conn_id}"
            )
        try:
            literal = ipaddress.ip_address(host)
        except ValueError:
            return
        if not self._private and not _is_public(literal):
            raise BadInput(f"{shown}: {host} is no public address")

    def session(self, accept: str, *, at_once: int) -> ClientSession:
        """Return a session that connects to public addresses alone, unless the connection says otherwise."""
        import aiohttp  # noqa: PLC0415 - slow; not at parse time

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=_public_resolver(private=self._private), use_dns_cache=False, limit=at_once
            ),
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            headers={"User-Agent": "Almanac", "Accept": accept},
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )

    @asynccontextmanager
    async def get(
        self, session: ClientSession, url: str, headers: Mapping[str, str]
    ) -> AsyncGenerator[ClientResponse]:
        """Open the answer at the end of the redirects, each of which is checked.

        Raises BadInput for one that leads away, Refused if there are more than MOST_REDIRECTS.
        """
        asked = url
        for hop in range(MOST_REDIRECTS + 1):
            self.check(asked, first=hop == 0)
            async with session.get(asked, headers=headers, allow_redirects=False) as response:
                if response.status not in _REDIRECTS:
                    yield response
                    return
                asked = self._joined(asked, response.headers.get("Location", ""))
        raise Refused(f"{self._what} {shown_url(url)}: more than {MOST_REDIRECTS} redirects")

    def _joined(self, url: str, location: str) -> str:
        try:
            return urljoin(url, location)
        except ValueError:
            raise Refused(
                f"{self._what} {shown_url(url)}: redirected to what is not a URL: {shown_url(location)[:200]!r}"
            ) from None

    def _names(self) -> frozenset[str]:
        given = self._access.extra.get("hosts")
        names = given.replace(",", " ").split() if isinstance(given, str) else given
        if names is None:
            names = []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self._access.bad("extra 'hosts'", "must be a list of host names")
        return frozenset(name.strip().lower() for name in names if name.strip())


async def body_of(response: ClientResponse, most: int, where: str) -> bytes:
    """Return an answer's body, unpacked. Raises Refused if it is larger than `most` bytes."""
    body = bytearray()
    async for piece in response.content.iter_chunked(65_536):
        body += piece
        if len(body) > most:
            raise Refused(f"{where}: is larger than {most:,} bytes")
    return bytes(body)


def private_cause(error: BaseException | None) -> str | None:
    """Return what was said of a private address, if that is why a connection failed."""
    while error is not None:
        if isinstance(error, PrivateAddressError):
            return str(error)
        error = error.__cause__ or error.__context__
    return None


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    within = _ipv4_within(address) if isinstance(address, IPv6Address) else None
    if within is not None:
        return _is_public(within)
    site_local = isinstance(address, IPv6Address) and address.is_site_local
    odd = address.is_multicast or address.is_reserved or site_local or address in _RELAYS
    return address.is_global and not odd


def _ipv4_within(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that a gateway would lead to: Python judges the one around it alone."""
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if any(address in network for network in _IPV4_AT_THE_END):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def _public_resolver(*, private: bool) -> Any:
    from aiohttp.abc import AbstractResolver, ResolveResult  # noqa: PLC0415 - slow; not at parse time
    from aiohttp.resolver import ThreadedResolver  # noqa: PLC0415 - as above

    class PublicResolver(AbstractResolver):
        """The connection is made to what was checked: a name can't be looked up anew in between."""

        def __init__(self) -> None:
            self._inner = ThreadedResolver()

        async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
            found = await self._inner.resolve(host, port, family)
            if not private and not all(_is_public(ipaddress.ip_address(one["host"])) for one in found):
                raise PrivateAddressError(f"{host} leads to an address that is not public")
            return found

        async def close(self) -> None:
            await self._inner.close()

    return PublicResolver()
