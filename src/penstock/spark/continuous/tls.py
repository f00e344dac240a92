"""TLS between the processes of the continuous mode, with certificates from Spark's settings or Penstock's.

Spark's settings are those of its own encrypted connections (`spark.ssl.rpc.*`, which fall back to `spark.ssl.*`).
Python reads PEM files, while Spark also reads Java key stores. If there is only a key store, Penstock's own settings
name the PEM files. A job never uses plain connections if Spark is configured to encrypt its own.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.common.errors import InvalidProgramError, JobExecutionError

__all__ = ["TlsFiles", "tls_files"]

_OWN = "security.ssl.internal."
_RPC = "spark.ssl.rpc."
_SPARK = "spark.ssl."
_ENCRYPTS = (f"{_RPC}enabled", "spark.network.crypto.enabled", "spark.authenticate.enableSaslEncryption")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files, which every machine has at the same path.

    :param ca: the authorities whose certificates are accepted
    """

    certificate: str
    key: str
    ca: str
    password: str | None = None

    def context(self, *, server: bool) -> ssl.SSLContext:
        """Return the context for one side of connections. Both sides show their certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False  # hosts change; the key and the secret of the job identify the other side
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_cert_chain(self.certificate, self.key, self.password)
            context.load_verify_locations(self.ca)
        except (OSError, ssl.SSLError) as error:
            raise JobExecutionError(
                f"the certificate {self.certificate} with the key {self.key} and the authorities {self.ca} cannot be "
                f"used on this machine: {error}. Every machine of the cluster needs these PEM files"
            ) from None
        if server:
            context.num_tickets = 0  # connections are not resumed
        return context


def tls_files(settings: Mapping[str, str]) -> TlsFiles | None:
    """Return the files from the settings of the job and of Spark, or None without encryption.

    >>> files = {"spark.ssl.certChain": "c.pem", "spark.ssl.rpc.privateKey": "k.pem"}
    >>> tls_files({**files, "spark.ssl.rpc.enabled": "true"})
    TlsFiles(certificate='c.pem', key='k.pem', ca='c.pem', password=None)
    >>> tls_files({**files, "spark.ssl.enabled": "true"}) is None  # only for Spark's web pages
    True
    """

    def given(*names: str) -> str:
        return next((settings[name].strip() for name in names if settings.get(name, "").strip()), "")

    own = _is_true(settings, f"{_OWN}enabled")
    asked_by = next((name for name in (f"{_OWN}enabled", *_ENCRYPTS) if _is_true(settings, name)), None)
    if asked_by is None:
        return None
    certificate = given(f"{_OWN}cert") or given(f"{_RPC}certChain", f"{_SPARK}certChain")
    key = given(f"{_OWN}key") or given(f"{_RPC}privateKey", f"{_SPARK}privateKey")
    if not certificate or not key:
        wanted = f"{_OWN}cert and {_OWN}key"
        if not own:
            wanted += f" (or {_RPC}certChain and {_RPC}privateKey)"
        hint = ""
        if given(f"{_RPC}keyStore", f"{_SPARK}keyStore"):
            hint = (
                ". Python does not read Java key stores: openssl pkcs12 -in store.p12 -nodes -out node.pem converts one"
            )
        raise InvalidProgramError(
            f"{asked_by} asks for encrypted connections, and the continuous mode needs {wanted} for them: the names of "
            f"PEM files that every machine has{hint}. Or use penstock.execution.mode: micro-batch"
        )
    password = given(f"{_OWN}key-password") or given(f"{_RPC}privateKeyPassword", f"{_SPARK}privateKeyPassword")
    return TlsFiles(certificate, key, given(f"{_OWN}ca") or certificate, password or None)


def _is_true(settings: Mapping[str, str], name: str) -> bool:
    return settings.get(name, "").strip().lower() == "true"
