"""TLS between commands and a service.

``PENSTOCK_CA_FILE`` is the authority that signs the service's certificate. ``PENSTOCK_CLIENT_CERT`` is a PEM file with
the certificate and key of this client, for services that require one.
"""

from __future__ import annotations

import os
import ssl

from penstock.common.errors import InvalidProgramError

__all__ = ["client_context"]


def client_context() -> ssl.SSLContext:
    """Return the TLS context for the environment variables. By default, it trusts the system's authorities. It always
    checks the host name.
    """
    authority, certificate = os.environ.get("PENSTOCK_CA_FILE"), os.environ.get("PENSTOCK_CLIENT_CERT")
    try:
        context = ssl.create_default_context(cafile=authority or None)
        if certificate:
            context.load_cert_chain(certificate)
    except (OSError, ssl.SSLError) as error:
        raise InvalidProgramError(f"PENSTOCK_CA_FILE or PENSTOCK_CLIENT_CERT cannot be used: {error}") from None
    return context
