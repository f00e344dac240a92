"""The interface to boto3, which is imported on demand and configured with the properties of Flink programs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from penstock.common.errors import InvalidProgramError, PenstockError

LOG = logging.getLogger("penstock.kinesis")

_LOCK = threading.Lock()
_PROVIDER = "aws.credentials.provider"
_ROLE_SESSION = "penstock"
# Throttling errors. Other errors that are the caller's fault fail no matter how often they are retried.
_BUSY = {
    "ProvisionedThroughputExceededException",
    "KMSThrottlingException",
    "LimitExceededException",
    "Throttling",
    "ThrottlingException",
    "RequestLimitExceeded",
    "RequestTimeout",
    "ServiceUnavailableException",
    "InternalFailure",
    "InternalFailureException",
}


class KinesisError(PenstockError):
    """An error of Kinesis, described by the message."""


def boto3_package() -> Any:
    """Return the package, or raise an error that explains how to install it."""
    try:
        import boto3
    except ImportError:
        raise InvalidProgramError("Kinesis needs the package boto3: pip install 'penstock[kinesis]'") from None
    return boto3


def check_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Check the properties. Raise an error that names missing ones."""
    known = {str(key): str(value) for key, value in properties.items()}
    if "aws.region" not in known and "aws.endpoint" not in known:
        raise InvalidProgramError("Kinesis needs the property aws.region, or aws.endpoint")
    provider = known.get(_PROVIDER, "AUTO")
    if provider not in _SESSIONS:
        raise InvalidProgramError(f"{_PROVIDER} must be one of {', '.join(_SESSIONS)}, not {provider!r}")
    for key in _NEEDED.get(provider, ()):
        if f"{_PROVIDER}.{key}" not in known:
            raise InvalidProgramError(f"{_PROVIDER} is {provider}, so the property {_PROVIDER}.{key} is needed")
    return known


def new_client(service: str, properties: Mapping[str, str]) -> Any:
    """Create a client of an AWS service. One client serves any number of threads."""
    boto3_package()
    from botocore.config import Config

    config = Config(connect_timeout=10, read_timeout=30, max_pool_connections=64, retries={"mode": "standard"})
    with _LOCK:  # threads may share clients, but not sessions
        return _session(frozenset(item for item in properties.items() if item[0].startswith("aws."))).client(
            service,
            region_name=properties.get("aws.region", "us-east-1"),
            endpoint_url=properties.get("aws.endpoint"),
            verify=properties.get("aws.trust.all.certificates", "false").lower() != "true",
            config=config,
        )


@lru_cache(8)  # a session reads large service descriptions once
def _session(settings: frozenset[tuple[str, str]]) -> Any:
    properties = dict(settings)
    provider = properties.get(_PROVIDER)
    if provider is None and f"{_PROVIDER}.basic.accesskeyid" in properties:
        provider = "BASIC"
    return _SESSIONS[provider or "AUTO"](boto3_package(), properties)


def _default(package: Any, properties: Mapping[str, str]) -> Any:
    return package.Session()


def _basic(package: Any, properties: Mapping[str, str]) -> Any:
    return package.Session(
        aws_access_key_id=properties[f"{_PROVIDER}.basic.accesskeyid"],
        aws_secret_access_key=properties[f"{_PROVIDER}.basic.secretkey"],
    )


def _profile(package: Any, properties: Mapping[str, str]) -> Any:
    path = properties.get(f"{_PROVIDER}.profile.path")
    name = properties.get(f"{_PROVIDER}.profile.name", "default")
    if path is None:
        return package.Session(profile_name=name)
    from botocore.session import Session

    session = Session(profile=name)
    session.set_config_variable("credentials_file", path)
    return package.Session(botocore_session=session)


def _role(package: Any, properties: Mapping[str, str]) -> Any:
    """Return the credentials of a role, which are renewed before they expire."""
    from botocore.credentials import RefreshableCredentials
    from botocore.session import get_session

    role = f"{_PROVIDER}.role"
    arguments = {
        "RoleArn": properties[f"{role}.arn"],
        "RoleSessionName": properties.get(f"{role}.sessionName", _ROLE_SESSION),
    }
    if f"{role}.externalId" in properties:
        arguments["ExternalId"] = properties[f"{role}.externalId"]

    def renew() -> dict[str, str]:
        token = package.client(
            "sts",
            region_name=properties.get("aws.region", "us-east-1"),
            endpoint_url=properties.get(f"{role}.stsEndpoint"),
        )
        granted = token.assume_role(**arguments)["Credentials"]
        return {
            "access_key": granted["AccessKeyId"],
            "secret_key": granted["SecretAccessKey"],
            "token": granted["SessionToken"],
            "expiry_time": granted["Expiration"].isoformat(),
        }

    session = get_session()
    session._credentials = RefreshableCredentials.create_from_metadata(renew(), renew, "sts-assume-role")
    return package.Session(botocore_session=session)


# By the names of Flink's credential providers. boto3 finds environment variables, web identity tokens and the machine's
# role by itself.
_SESSIONS = {
    "AUTO": _default,
    "BASIC": _basic,
    "ENV_VAR": _default,
    "PROFILE": _profile,
    "ASSUME_ROLE": _role,
    "WEB_IDENTITY_TOKEN": _default,
}
_NEEDED = {"BASIC": ("basic.accesskeyid", "basic.secretkey"), "ASSUME_ROLE": ("role.arn",)}


def code_of(error: Exception) -> str:
    """Return AWS's error code, or an empty string if the request did not reach the service."""
    answer: Any = getattr(error, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", ""))


def is_busy(error: Exception) -> bool:
    """Whether the service is throttling requests."""
    answer: Any = getattr(error, "response", None) or {}
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code_of(error) in _BUSY or status >= 500


def is_away(error: Exception) -> bool:
    """Whether the request did not reach the service, or the response was lost."""
    from botocore.exceptions import ConnectionError as NoConnection
    from botocore.exceptions import HTTPClientError

    return isinstance(error, (NoConnection, HTTPClientError, OSError))


def reason(error: Exception) -> str:
    """Return the message of an error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
