"""Write savepoints: new ones from data, and changed ones from others."""

from __future__ import annotations

import os
import zlib
from dataclasses import replace

from penstock.common.checks import is_int, require_name
from penstock.common.errors import InvalidProgramError, SavepointError, shorten
from penstock.graph.job_graph import operator_id_of
from penstock.runtime.records.key_groups import UPPER_BOUND_MAX_PARALLELISM
from penstock.runtime.savepoint.capture import SavepointRequest, add_part
from penstock.runtime.savepoint.manifest import METADATA, Manifest, OperatorManifest, read_manifest
from penstock.runtime.savepoint.storage import Directory, absolute, directory_at
from penstock.state_processor.bootstrap import Bootstrap


class SavepointWriter:
    """Builds a savepoint. Nothing is written before :meth:`write`.

    >>> SavepointWriter.new_savepoint(max_parallelism=64).max_parallelism
    64
    """

    def __init__(self, manifest: Manifest, origin: str | None, max_parallelism: int) -> None:
        if not (is_int(max_parallelism) and 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM):
            raise SavepointError(
                f"max parallelism must be an int from 1 to {UPPER_BOUND_MAX_PARALLELISM}, got {max_parallelism!r}"
            )
        self.max_parallelism = max_parallelism
        self._manifest = manifest
        self._origin = origin
        self._added: dict[str, Bootstrap] = {}

    @staticmethod
    def new_savepoint(max_parallelism: int = 128) -> SavepointWriter:
        """Start with an empty savepoint. Jobs that start from it need this max parallelism (by default 128)."""
        return SavepointWriter(Manifest(), None, max_parallelism)

    @staticmethod
    def from_existing_savepoint(path: str, max_parallelism: int | None = None) -> SavepointWriter:
        """Start with a copy. Positions of sources do not change."""
        path = absolute(path)
        manifest = read_manifest(path)
        known = [operator.max_parallelism for operator in manifest.operators.values() if operator.is_keyed]
        return SavepointWriter(manifest, path, max_parallelism or max(known, default=128))

    def with_operator(self, uid: str, bootstrap: Bootstrap) -> SavepointWriter:
        """Add the state of an operator. Remove an existing state of this operator first."""
        if not isinstance(bootstrap, Bootstrap):
            raise InvalidProgramError(
                f"the state of operator '{uid}' must be a result of "
                f"OperatorTransformation.bootstrap_with(...)...transform(...), got {shorten(bootstrap)}"
            )
        self._check_free(require_name(uid, "the uid of an operator"))
        self._added[uid] = bootstrap
        return self

    def _check_free(self, uid: str) -> None:
        if operator_id_of(uid) in self._manifest.operators or uid in self._added:
            raise SavepointError(
                f"the savepoint already has an operator with uid '{uid}': call remove_operator() first"
            )

    def remove_operator(self, uid: str) -> SavepointWriter:
        """Leave out the state of an operator."""
        if self._added.pop(uid, None) is None:
            del self._manifest.operators[self._manifest.find(uid).operator_id]
        return self

    def change_operator_identifier(self, uid: str, new_uid: str) -> SavepointWriter:
        """Assign the state of an operator to another uid."""
        operator = self._manifest.find(uid)
        self._check_free(require_name(new_uid, "the uid of an operator"))
        del self._manifest.operators[operator.operator_id]
        operator.operator_id, operator.uid = operator_id_of(new_uid), new_uid
        self._manifest.operators[operator.operator_id] = operator
        return self

    def remove_source(self, uid: str) -> SavepointWriter:
        """Remove the position of a source, which then starts from the beginning."""
        del self._manifest.sources[self._manifest.find_source(uid)]
        return self

    def write(self, path: str) -> str:
        """Write the savepoint into a new directory, and return its path."""
        path = absolute(path)
        directory = directory_at(path)
        if directory.files():
            raise SavepointError(f"the directory {path} is not empty: write the savepoint into a new one")
        try:
            if self._origin is not None:
                self._copy(directory_at(self._origin), directory)
            made = [self._write_operator(path, uid, bootstrap) for uid, bootstrap in self._added.items()]
            operators = {**self._manifest.operators, **{operator.operator_id: operator for operator in made}}
            replace(self._manifest, operators=operators).write(directory)
        except BaseException:
            directory.dispose()  # so that the user can try again
            raise
        return path

    def _write_operator(self, path: str, uid: str, bootstrap: Bootstrap) -> OperatorManifest:
        request = SavepointRequest(os.urandom(8).hex(), path, self._manifest.compression)
        operator_id = operator_id_of(uid)
        parts = bootstrap.write(request, operator_id, uid, self.max_parallelism)
        operator = OperatorManifest(operator_id, uid, uid, len(parts), self.max_parallelism)
        for part in parts:
            add_part(operator, part)
        operator.watermarks.clear()  # without a job, there is no event time
        return operator

    def _copy(self, origin: Directory, target: Directory) -> None:
        if origin.size(METADATA) is None:
            raise SavepointError(f"there is no complete savepoint in {origin.location}")
        for file in self._manifest.files():
            checksum = 0
            with origin.open(file["path"]) as source, target.create(file["path"]) as copy:
                while chunk := source.read(1 << 20):
                    checksum = zlib.crc32(chunk, checksum)
                    copy.write(chunk)
            if checksum != file["crc32"]:
                raise SavepointError(
                    f"file {file['path']} of the savepoint in {origin.location} is damaged (it does not match its "
                    "checksum): use another savepoint"
                )
