"""The engine-free runtime: operators, keyed state, timers, watermarks and tasks.

Nothing here knows about Spark. A task processes batches of records against a
:class:`~penstock.runtime.state.pages.PageStore`; who moves the buffers between tasks and where the
pages are kept is the executor's business (`penstock.spark`, `penstock.testing`).
"""
