"""``penstock token create``: adds users of a service."""

from __future__ import annotations

import argparse

from penstock.common.errors import InvalidProgramError

__all__ = ["create"]


def create(options: argparse.Namespace) -> int:
    """Add a user to a token file and print the token, once."""
    try:
        from penstock.cluster.rest.authentication import Role, create_token
    except ImportError as error:
        raise InvalidProgramError(
            f"this command needs the extra 'service' ({error}): pip install 'penstock[service]'"
        ) from None
    print(create_token(options.file, options.name, Role[options.role.upper()]))
    return 0
