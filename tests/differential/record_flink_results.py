"""Record what Flink SQL gives for the queries of `tests/table/flink_results.json`.

    python -m tests.differential.record_flink_results [--new]

reads the queries of the file, runs them in Flink and writes their results back. With ``--new``, it runs those without
a result only. To add a query, write it into the file with ``null`` as its result: ``["1 + 1", null]`` in `values` of a
block of expressions, or ``["SELECT 1", null]`` in `steps` of a script.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.systems.environment import PYFLINK
from tests.table.flink_results import PATH, create_tables, load, statement_of

_SOURCE = Path(__file__).parent / "java" / "SqlRecorder.java"
_OPENED = ("java.util", "java.lang", "java.time", "java.nio", "java.net")


class FlinkSql:
    """A Java process with a small Flink cluster, which runs scripts one after the other."""

    def __init__(self):
        PYFLINK.ensure()
        jars = f"{PYFLINK.site_packages}/pyflink/lib/*"
        classes = tempfile.mkdtemp()
        subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", classes, str(_SOURCE)], check=True)
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        command = ["java", *opened, "-cp", os.pathsep.join((classes, jars)), "SqlRecorder"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = int(self._process.stdout.readline())
        self._connection = socket.create_connection(("127.0.0.1", port)).makefile("rw", encoding="utf-8")

    def run(self, statements, *, batch, options):
        """The result of each statement: a dict with `rows`, or with `error`."""
        request = {"statements": statements, "batch": batch, "options": options}
        self._connection.write(json.dumps(request) + "\n")
        self._connection.flush()
        return json.loads(self._connection.readline())

    def close(self):
        """End the process."""
        self._process.kill()
        self._process.wait()


def record_expressions(flink, recorded, block, directory, *, only_new):
    """The value of each expression of a block; those that fail move to `errors`."""
    asked = [one for one in block["values"] if one[1] is None or not only_new]
    if not only_new:
        asked += [[expression, None] for expression in block["errors"]]
    values = {one[0]: one[1] for one in block["values"]}
    errors = [] if not only_new else list(block["errors"])
    tables = create_tables(recorded["tables"], block.get("tables", []), directory)

    def ask(expressions):
        statement = statement_of({**block, "values": [[one, None] for one in expressions]})
        result = flink.run([*tables, statement], batch=True, options=block.get("options", {}))[-1]
        if "rows" in result:
            values.update(zip(expressions, result["rows"][0][1:], strict=True))
        elif len(expressions) == 1:
            errors.append(expressions[0])
            values.pop(expressions[0], None)
        else:
            middle = len(expressions) // 2
            ask(expressions[:middle])
            ask(expressions[middle:])

    if asked:
        ask([expression for expression, _ in asked])
    return {**block, "values": [list(one) for one in values.items()], "errors": errors}


def record_script(flink, recorded, script, directory, *, only_new):
    """The result of each statement of a script: the changelog, or the name of the error."""
    if only_new and all(result is not None for _, result in script["steps"]):
        return script
    tables = create_tables(recorded["tables"], script.get("tables", []), directory)
    statements = [statement for statement, _ in script["steps"]]
    results = flink.run([*tables, *statements], batch=script.get("batch", False), options=script.get("options", {}))
    steps = zip(statements, results[len(tables) :], strict=True)
    return {**script, "steps": [[statement, _changes(result)] for statement, result in steps]}


def _changes(result):
    if "error" in result:
        return result["error"]
    return [f"{kind}({', '.join(values)})" for kind, *values in result["rows"]]


def write(recorded):
    """One line for each table, block and script."""
    tables = ",\n".join(f"  {json.dumps(name)}: {_line(table)}" for name, table in recorded["tables"].items())
    parts = [f'"tables": {{\n{tables}\n}}']
    for name in ("expressions", "scripts"):
        lines = ",\n".join(f"  {_line(one)}" for one in recorded[name])
        parts.append(f'"{name}": [\n{lines}\n]')
    PATH.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def _line(value):
    return json.dumps(value, ensure_ascii=False)


def main():
    """Run what was asked for."""
    only_new = "--new" in sys.argv[1:]
    recorded, flink = load(), FlinkSql()
    try:
        with tempfile.TemporaryDirectory() as directory:
            recorded["expressions"] = [
                record_expressions(flink, recorded, block, directory, only_new=only_new)
                for block in recorded["expressions"]
            ]
            recorded["scripts"] = [
                record_script(flink, recorded, script, directory, only_new=only_new) for script in recorded["scripts"]
            ]
    finally:
        flink.close()
    write(recorded)


if __name__ == "__main__":
    main()
