"""Where a server listens, and how a client over TCP shows who it is."""

from __future__ import annotations

import ipaddress
import os
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc

from ._errors import AddressError, CredentialsError

PORT_DEFAULT = 7420
"""Of `minervad` on vsock and TCP."""


@dataclass(frozen=True)
class Address:
    """`unix:/path`, `vsock:CID:PORT`, `https://host:port`, or `http://host:port` on the loopback only."""

    scheme: str
    path: str = ""
    cid: int = 0
    host: str = ""
    port: int = 0

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads one of the forms above."""

        def wrong(reason: str) -> AddressError:
            return AddressError(f"'{text}' is no address of a server of Minerva: {reason}")

        scheme, colon, rest = text.partition(":")
        if not colon or scheme not in ("unix", "vsock", "https", "http"):
            raise wrong("it begins with unix:, vsock:, https:// or, on the loopback, http://")
        if scheme == "unix":
            # `unix:///path` is how gRPC writes it elsewhere.
            path = rest.removeprefix("//")
            if not path.startswith("/"):
                raise wrong("a socket is named by its whole path, as in unix:/run/minerva/tenant.sock")
            return cls(scheme, path=path)
        if scheme == "vsock":
            cid, _, port = rest.partition(":")
            if not (cid.isdecimal() and port.isdecimal()):
                raise wrong("write vsock:CID:PORT with numbers, as in vsock:2:7420")
            return cls(scheme, cid=int(cid), port=int(port))
        try:
            parts = urllib.parse.urlsplit(text)
            host, number = parts.hostname, parts.port
        except ValueError:
            raise wrong("write https://host:port") from None
        if not host or parts.path.strip("/"):
            raise wrong("write https://host:port")
        if number is None:
            raise wrong(f"the port is missing; {PORT_DEFAULT} is Minerva's")
        if scheme == "http" and not _is_loopback(host):
            raise wrong("without TLS it must be the loopback, such as http://127.0.0.1:7420; use https:// elsewhere")
        return cls(scheme, host=host, port=number)

    def __str__(self) -> str:
        if self.scheme == "unix":
            return f"unix:{self.path}"
        if self.scheme == "vsock":
            return f"vsock:{self.cid}:{self.port}"
        return f"{self.scheme}://{self._authority()}"

    def _authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_tcp(self) -> bool:
        """Whether the server must be shown who one is; elsewhere it sees for itself."""
        return self.scheme in ("https", "http")

    @property
    def target(self) -> str:
        """As grpcio names it."""
        return f"dns:///{self._authority()}" if self.is_tcp else str(self)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Credentials:
    """How a client over TCP shows who it is, and by what it knows the server."""

    authority: bytes | None = field(default=None, repr=False)
    """The certificate, as PEM, of who signed the server's."""
    certificate: bytes | None = field(default=None, repr=False)
    """This side's certificate, as PEM."""
    key: bytes | None = field(default=None, repr=False)
    """The key that belongs to it, as PEM."""
    token: str | None = field(default=None, repr=False)
    """A bearer token that stands for the tenant."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Credentials:
        """As `MINERVA_CA`, `MINERVA_CERTIFICATE` with `MINERVA_KEY`, `MINERVA_TOKEN` or `MINERVA_TOKEN_FILE` say; all but the
        token itself are names of files."""
        names = os.environ if environment is None else environment
        certificate = _read(names, "MINERVA_CERTIFICATE")
        key = _read(names, "MINERVA_KEY")
        if (certificate is None) != (key is None):
            raise CredentialsError("MINERVA_CERTIFICATE and MINERVA_KEY go together: set both or none")
        token = names.get("MINERVA_TOKEN", "").strip() or None
        if token is None:
            text = _read(names, "MINERVA_TOKEN_FILE")
            token = None if text is None else text.decode("utf-8", "replace").strip()
        return cls(_read(names, "MINERVA_CA"), certificate, key, token)

    def for_channel(self, address: Address) -> grpc.ChannelCredentials | None:
        """What the channel is encrypted with; nothing where it is not."""
        if address.scheme != "https":
            return None
        if self.authority is None:
            raise CredentialsError(
                f"{address} needs the certificate of the authority that signed the server's: set MINERVA_CA to its file"
            )
        return grpc.ssl_channel_credentials(self.authority, self.key, self.certificate)

    def metadata(self, address: Address) -> tuple[tuple[str, str], ...]:
        """What stands on each request."""
        if self.token is None or not address.is_tcp:
            return ()
        if not all(" " <= letter <= "~" for letter in self.token):
            # Not shown: it is a secret. grpcio would show it.
            raise CredentialsError("the token has characters that no request can carry: see MINERVA_TOKEN or MINERVA_TOKEN_FILE")
        return (("authorization", f"Bearer {self.token}"),)


def _read(names: Mapping[str, str], name: str) -> bytes | None:
    path = names.get(name)
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise CredentialsError(f"failed to read {path}, which {name} names: {error.strerror}") from error
