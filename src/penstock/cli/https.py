"""TLS between commands and a service.

``PENSTOCK_CA_FILE`` names the authority that signs the service's certificate, ``PENSTOCK_CLIENT_CERT`` a PEM file with
the certificate and the key of this client, for services that want one.
"""

from __future__ import annotations

import os
import ssl

from penstock.common.errors import InvalidProgramError

__all__ = ["client_context"]


def client_context() -> ssl.SSLContext:
    """Return the TLS context that the environment describes; by default it trusts the system's authorities. It always
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
