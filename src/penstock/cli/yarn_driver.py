"""What YARN starts in the application master: the program beside its REST API.

Spark's JVM is there already; this script gets the options and arguments of ``penstock run-application``.
"""

import os
import shutil
import sys
import tempfile


def main() -> int:
    """Run the program; the exit code is the application's."""
    from penstock.cli.main import main as penstock

    # A container's directory may be too long a path for sockets, and its user need not have a home.
    records = tempfile.mkdtemp(prefix="penstock-jobs-")
    os.environ.setdefault("PENSTOCK_JOBS", records)
    try:
        host = os.environ.get("NM_HOST", "127.0.0.1")
        return penstock(["run-application", "--host", host, "--port", "0", *sys.argv[1:]])
    finally:
        shutil.rmtree(records, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
