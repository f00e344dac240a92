"""The script that YARN starts in the application master: runs the program with its REST API.

Spark's JVM is already running. The script receives the options and arguments of ``penstock run-application``.
"""

import os
import shutil
import sys
import tempfile


def main() -> int:
    """Run the program. Its exit code is the application's."""
    from penstock.cli.main import main as penstock

    # A container's directory may be too long for sockets, and its user may have no home directory.
    records = tempfile.mkdtemp(prefix="penstock-jobs-")
    os.environ.setdefault("PENSTOCK_JOBS", records)
    try:
        host = os.environ.get("NM_HOST", "127.0.0.1")
        return penstock(["run-application", "--host", host, "--port", "0", *sys.argv[1:]])
    finally:
        shutil.rmtree(records, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
