"""Hides secrets in all output of the service: one list of sensitive keys, one function per kind of text."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "******"
"""The replacement of a secret, as in Flink."""

_SENSITIVE = (
    "password", "secret", "fs.azure.account.key", "apikey", "api-key", "auth-params", "service-key", "token",
    "basic-auth", "jaas.config", "http-headers",
    "passwd", "credential", "private", "access-key", "sasl", "connection-string",
)  # fmt: skip
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_SPARK_DEFAULT = re.compile(r"(?i)secret|password|token|access[.]?key")


def is_sensitive(key: str) -> bool:
    """Whether the value of this key is a secret.

    >>> is_sensitive("kafka.sasl.password"), is_sensitive("--api-key"), is_sensitive("parallelism.default")
    (True, True, False)
    """
    lowered = key.lower()
    return any(word in lowered for word in _SENSITIVE) or _SPARK_DEFAULT.search(lowered) is not None


def redact_text(text: str) -> str:
    """Hide the user and password of every URL in a text.

    >>> redact_text("jdbc:postgresql://ann:s3cret@db/orders")
    'jdbc:postgresql://******@db/orders'
    """
    return _USER_INFO.sub(HIDDEN, text)


def redact_value(key: str, value: str) -> str:
    """Return a setting without secrets.

    >>> redact_value("security.token", "abc"), redact_value("url", "http://a:b@host/")
    ('******', 'http://******@host/')
    """
    return HIDDEN if is_sensitive(key) else redact_text(value)


def redact_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings without secrets."""
    return {key: redact_value(key, str(value)) for key, value in settings.items()}
