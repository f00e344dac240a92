"""The engine-free runtime: operators, keyed state, timers, watermarks and tasks.

Nothing here knows about Spark. A task processes batches of records against a
:class:`~penstock.runtime.state.pages.PageStore`. The engine (`penstock.spark`, `penstock.testing`) moves frames between
tasks and stores the pages.
"""
