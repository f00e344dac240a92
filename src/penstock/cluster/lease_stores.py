"""Stores of the leader's lease: files in a shared directory, Kubernetes objects, or ZooKeeper nodes.

Each one offers what a lease needs: an object that can be created once and whose owner replaces the content.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import ssl
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.common.errors import CheckpointError, InvalidProgramError
from penstock.runtime.lease.files import LeaseFiles, LocalLeaseFiles

__all__ = ["KubernetesApi", "KubernetesLeases", "ZooKeeperLeases", "lease_store", "shared_directory"]

_TYPE = "high-availability.type"
_DIRECTORY = "high-availability.storageDir"
_CLUSTER = "high-availability.cluster-id"
_NAMESPACE = "kubernetes.namespace"
_QUORUM = "high-availability.zookeeper.quorum"
_ROOT = "high-availability.zookeeper.path.root"
_TYPES = ("none", "filesystem", "kubernetes", "zookeeper")
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CONTENT = "penstock.io/content"
_LABEL = "penstock.io/cluster"
_SECONDS = 5.0


def shared_directory(settings: Mapping[str, str]) -> Path | None:
    """Return the shared directory of a cluster of services by its settings, or None without high availability."""
    kind = settings.get(_TYPE, "none").strip().lower()
    if kind not in _TYPES:
        raise InvalidProgramError(f"{_TYPE} is '{kind}': it must be one of {', '.join(_TYPES)}")
    if kind == "none":
        return None
    directory = settings.get(_DIRECTORY)
    if not directory:
        raise InvalidProgramError(f"{_TYPE}={kind} needs {_DIRECTORY}: a directory that all services share")
    cluster = settings.get(_CLUSTER, "default").strip("/")
    return Path(directory.removeprefix("file://")) / cluster


def lease_store(settings: Mapping[str, str], shared: Path) -> LeaseFiles:
    """Return the store of the leader's lease."""
    kind = settings.get(_TYPE, "filesystem").strip().lower()
    cluster = settings.get(_CLUSTER, "default").strip("/")
    if kind == "kubernetes":
        return KubernetesLeases(KubernetesApi.inside_cluster(settings.get(_NAMESPACE)), cluster)
    if kind == "zookeeper":
        if _QUORUM not in settings:
            raise InvalidProgramError(f"{_TYPE}=zookeeper needs {_QUORUM}: host:port,host:port")
        root = settings.get(_ROOT, "/penstock").rstrip("/")
        return ZooKeeperLeases(settings[_QUORUM], f"{root}/{cluster}/leader")
    return LocalLeaseFiles(str(shared), shared / "leader")


@dataclass(frozen=True, slots=True)
class KubernetesApi:
    """The API server and the credentials for it."""

    host: str
    port: int
    namespace: str
    token: Path | None = None
    authority: Path | None = None

    @staticmethod
    def inside_cluster(namespace: str | None = None) -> KubernetesApi:
        """Use the service account of this pod."""
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            raise InvalidProgramError(f"{_TYPE}=kubernetes works in a pod: KUBERNETES_SERVICE_HOST is not set")
        if namespace is None:
            namespace = (_SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
        return KubernetesApi(host, int(port), namespace, _SERVICE_ACCOUNT / "token", _SERVICE_ACCOUNT / "ca.crt")

    def send(self, method: str, path: str, body: Any = None, *, patch: bool = False) -> tuple[int, Any]:
        """Send one request. The token is read each time, because Kubernetes renews it."""
        headers = {"Content-Type": "application/merge-patch+json" if patch else "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token.read_text(encoding='utf-8').strip()}"
        connection: http.client.HTTPConnection
        if self.authority is None:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=_SECONDS)
        else:
            context = ssl.create_default_context(cafile=str(self.authority))
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=_SECONDS, context=context)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content else None
        finally:
            connection.close()


class KubernetesLeases:
    """Objects of the kind Lease. The content is in an annotation, and `kubectl get leases` shows the holder."""

    def __init__(self, api: KubernetesApi, cluster: str) -> None:
        self._api = api
        self._cluster = re.sub(r"[^a-z0-9-]+", "-", cluster.lower()).strip("-") or "default"
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{urllib.parse.quote(api.namespace)}/leases"
        self.location = f"Kubernetes namespace {api.namespace}, cluster {self._cluster}"

    def names(self) -> list[str]:
        """Return the names of the leases with the label of this cluster."""
        query = urllib.parse.urlencode({"labelSelector": f"{_LABEL}={self._cluster}"})
        items = self._send("GET", f"{self._path}?{query}", allowed={200})[1]["items"]
        prefix = self._object("")
        return [item["metadata"]["name"].removeprefix(prefix) for item in items]

    def create(self, name: str, content: bytes) -> bool:
        """Create an object. The API server allows this to only one of several callers."""
        metadata = {"name": self._object(name), "labels": {_LABEL: self._cluster}, **_annotation(content)}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {"holderIdentity": os.uname().nodename},
        }
        return self._send("POST", self._path, lease, allowed={200, 201, 409})[0] != 409

    def read(self, name: str) -> bytes | None:
        """Read the content from the API server."""
        status, found = self._send("GET", f"{self._path}/{self._object(name)}", allowed={200, 404})
        if status == 404:
            return None
        return base64.b64decode(found["metadata"].get("annotations", {}).get(_CONTENT, ""))

    def exists(self, name: str) -> bool:
        """Whether the object exists."""
        return self.read(name) is not None

    def write(self, name: str, content: bytes) -> None:
        """Replace the annotation, and create the object if it is missing."""
        target = f"{self._path}/{self._object(name)}"
        change = {"metadata": _annotation(content)}
        status, _ = self._send("PATCH", target, change, allowed={200, 404}, patch=True)
        if status == 404 and not self.create(name, content):
            self._send("PATCH", target, change, allowed={200}, patch=True)

    def remove(self, name: str) -> None:
        """Delete the object."""
        self._send("DELETE", f"{self._path}/{self._object(name)}", allowed={200, 202, 404})

    def _object(self, name: str) -> str:
        return f"penstock-{self._cluster}-{name}"

    def _send(
        self, method: str, path: str, body: Any = None, *, allowed: set[int], patch: bool = False
    ) -> tuple[int, Any]:
        try:
            status, found = self._api.send(method, path, body, patch=patch)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise CheckpointError(f"cannot use the lease in {self.location}: {error}") from error
        if status not in allowed:
            said = found.get("message") if isinstance(found, dict) else None
            raise CheckpointError(f"cannot use the lease in {self.location}: the API server answers {status} ({said})")
        return status, found


def _annotation(content: bytes) -> dict[str, Any]:
    return {"annotations": {_CONTENT: base64.b64encode(content).decode()}}


class ZooKeeperLeases:
    """Persistent nodes below one path: heartbeats show whether the owner is alive, and epochs must not fall."""

    def __init__(self, quorum: str, root: str) -> None:
        try:
            from kazoo import exceptions
            from kazoo.client import KazooClient
            from kazoo.handlers.threading import KazooTimeoutError
        except ImportError as error:
            raise InvalidProgramError(
                f"{_TYPE}=zookeeper needs the extra 'zookeeper' ({error}): pip install 'penstock[zookeeper]'"
            ) from None
        self.location = f"ZooKeeper {quorum}{root}"
        self._root = root
        self._exists, self._missing = exceptions.NodeExistsError, exceptions.NoNodeError
        self._failures = (exceptions.KazooException, KazooTimeoutError, OSError)
        self._client = KazooClient(quorum, timeout=_SECONDS)
        try:
            self._client.start(_SECONDS * 2)
            self._client.ensure_path(root)
        except self._failures as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        """Close the session."""
        self._client.stop()
        self._client.close()

    def names(self) -> list[str]:
        """Return all nodes."""
        return [str(name) for name in self._call(self._client.get_children, self._root)]

    def create(self, name: str, content: bytes) -> bool:
        """Create a node. ZooKeeper allows this to only one of several callers."""
        try:
            self._call(self._client.create, self._node(name), content)
        except self._exists:
            return False
        return True

    def read(self, name: str) -> bytes | None:
        """Read the content that the quorum has: a follower synchronizes before it responds."""
        node = self._node(name)
        try:
            self._call(self._client.sync, node)
            return bytes(self._call(self._client.get, node)[0])
        except self._missing:
            return None

    def exists(self, name: str) -> bool:
        """Whether the node exists."""
        return self.read(name) is not None

    def write(self, name: str, content: bytes) -> None:
        """Replace the content, and create the node if it is missing."""
        try:
            self._call(self._client.set, self._node(name), content)
        except self._missing:
            if not self.create(name, content):
                self._call(self._client.set, self._node(name), content)

    def remove(self, name: str) -> None:
        """Delete the node."""
        try:
            self._call(self._client.delete, self._node(name))
        except self._missing:
            return

    def _node(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (self._exists, self._missing):
            raise
        except self._failures as error:
            raise self._unusable(error) from error

    def _unusable(self, error: BaseException) -> CheckpointError:
        return CheckpointError(f"cannot use the lease in {self.location}: {str(error) or type(error).__name__}")
