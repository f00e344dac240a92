"""Does memory stay flat? Runs a keyed job for many batches and looks at every process now and then.

    python benchmarks/memory.py --batches 200

The job is (b), a running average per key, with a fixed number of records per batch, on embedded Spark. Resident memory
is summed over kinds of processes; Java's heap is what is left after a collection. Exits with 1 if the second half of
the run ended more than a tenth above its beginning.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness.cpu import processes_of_session
from benchmarks.harness.options import Workload
from benchmarks.jobs import keyed_average
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import DiscardingSink
from penstock.spark import session

PAGE = os.sysconf("SC_PAGE_SIZE")
MEGABYTE = 1 << 20
ALLOWED_GROWTH = 1.1


def main() -> int:
    """Run and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--records", type=int, default=20_000, help="per batch")
    parser.add_argument("--keys", type=int, default=1_000)
    arguments = parser.parse_args()
    load = Workload(records=arguments.batches * arguments.records, keys=arguments.keys, parallelism=2)
    settings = Configuration()
    settings.set_string("penstock.batch.max-records", str(arguments.records))
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(load.parallelism)
    keyed_average.build(env, load).sink_to(DiscardingSink())
    client: Any = env.execute_async("memory")
    done = client.get_job_execution_result()
    samples: list[tuple[int, int, int, int]] = []
    print(f"{'batch':>6} {'driver':>9} {'workers':>9} {'Java heap':>10}   MB", flush=True)
    step = max(1, arguments.batches // 10)
    while not done.done():
        batch = client.progress.checkpoint_id
        if batch >= (len(samples) + 1) * step:
            samples.append((batch, *_memory()))
            sizes = [size / MEGABYTE for size in samples[-1][1:]]
            print("{:>6} {:>9.1f} {:>9.1f} {:>10.1f}".format(batch, *sizes), flush=True)
        time.sleep(0.05)
    done.result()
    middle, last = samples[len(samples) // 2], samples[-1]
    grown = [kind for kind, a, b in zip(("driver", "workers", "heap"), middle[1:], last[1:], strict=True)
             if b > a * ALLOWED_GROWTH]  # fmt: skip
    print("flat" if not grown else f"grew by more than a tenth in the second half: {', '.join(grown)}")
    return 1 if grown else 0


def _memory() -> tuple[int, int, int]:
    """Bytes of the driver, of all Python workers, and of Java's heap after a collection."""
    gc.collect()
    embedded = session._embedded
    assert embedded is not None
    java: Any = embedded.session.sparkContext._jvm
    runtime = java.java.lang.Runtime.getRuntime()
    runtime.gc()
    heap = int(runtime.totalMemory()) - int(runtime.freeMemory())
    workers = [pid for pid in processes_of_session(embedded.jvm.pid) if pid != embedded.jvm.pid]
    return _resident(os.getpid()), sum(map(_resident, workers)), heap


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except OSError:  # ended meanwhile
        return 0


if __name__ == "__main__":
    sys.exit(main())
