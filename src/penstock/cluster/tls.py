"""TLS of the REST API: certificates in PEM files, which are read again when they change."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from penstock.common.errors import InvalidProgramError

__all__ = ["TlsFiles", "tls_files"]

_PREFIX = "security.ssl.rest."


@dataclass(slots=True)
class TlsFiles:
    """The certificate of the service and, with `ca`, the authority that signs the certificates of clients."""

    certificate: Path
    key: Path
    ca: Path | None = None
    _changed: tuple[int, ...] = ()

    def context(self) -> ssl.SSLContext:
        """Create the context of a server, for TLS 1.2 and later."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.load(context)
        if self.ca is not None:
            context.load_verify_locations(self.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Load the current certificate from the files, for new connections."""
        try:
            self._changed = self._times()
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidProgramError(
                f"the certificate {self.certificate} and the key {self.key} cannot be used: {error}"
            ) from None

    def has_changed(self) -> bool:
        """Whether there is a new certificate."""
        try:
            return self._times() != self._changed
        except OSError:  # the file is being replaced
            return False

    def _times(self) -> tuple[int, ...]:
        return tuple(path.stat().st_mtime_ns for path in (self.certificate, self.key))


def tls_files(settings: dict[str, str]) -> TlsFiles | None:
    """Read the settings `security.ssl.rest.*`. Return None without TLS."""

    def given(name: str) -> str:
        return settings.get(_PREFIX + name, "").strip()

    if given("enabled").lower() != "true":
        return None
    if not given("cert") or not given("key"):
        hint = ""
        if given("keystore"):
            hint = " (Java key stores are not read: openssl pkcs12 -in store.p12 -nodes -out service.pem converts one)"
        raise InvalidProgramError(
            f"{_PREFIX}enabled needs {_PREFIX}cert and {_PREFIX}key: the names of PEM files{hint}"
        )
    mutual = given("authentication-enabled").lower() == "true"
    if mutual and not given("ca"):
        raise InvalidProgramError(
            f"{_PREFIX}authentication-enabled needs {_PREFIX}ca: the authority that signs the certificates of clients"
        )
    return TlsFiles(Path(given("cert")), Path(given("key")), Path(given("ca")) if mutual else None)
