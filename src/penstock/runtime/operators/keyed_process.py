"""KeyedProcessFunction: keyed state and timers for every record of a keyed stream (rule 6.3)."""

from __future__ import annotations

from penstock.core.functions import KeyedProcessFunction
from penstock.core.output_tag import OutputTag
from penstock.runtime.operators.failures import keyed_error
from penstock.runtime.operators.keyed_timers import KeyedContextBase, KeyedTimerOperator
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.records.isolation import IMMUTABLE, protect

_HOLDERS_OF_INPUT = 3  # of a record passed on: the batch, the loop variable, the function's parameter or result


class KeyedProcessContext(KeyedContextBase, KeyedProcessFunction.OnTimerContext):
    """The `ctx` of process_element and on_timer."""


class KeyedProcessOperator(KeyedTimerOperator):
    """Runs a KeyedProcessFunction."""

    method = "process_element"

    def __init__(self, function: KeyedProcessFunction, key_selector: KeySelect) -> None:
        super().__init__(function)
        self.key_selector = key_selector

    def create_context(self) -> KeyedProcessContext:
        """Create the one `ctx` for all records and timers."""
        return KeyedProcessContext(self)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Call the function for each record."""
        if timestamps is None:
            self._process_unstamped(values)
        else:
            self.run_keyed(self.key_selector, self.function.process_element, self.method, values, timestamps)

    def _process_unstamped(self, values: Values) -> None:
        """The hot loop of keyed jobs: only locals, with key switch and emission inlined."""
        collector, backend, timers = self.collector, self.backend, self.timers
        ctx, process = self.ctx, self.function.process_element
        select, entries = self.key_selector, backend.entries
        ctx.current_timestamp = None
        append = collector.values.append
        try:
            for value in values:
                key = select(value)
                entry = entries.get(key)
                if entry is None:
                    entry = backend.activate(key)
                backend.key = key
                backend.entry = entry
                results = process(value, ctx)
                if results is not None:
                    for item in results:
                        # Most keyed functions emit pairs of scalars: recognize them without a call.
                        if type(item) is tuple and len(item) == 2:
                            first, second = item
                            if type(first) in IMMUTABLE and type(second) in IMMUTABLE:
                                append(item)
                            elif type(first) is OutputTag:
                                collector.side(first, second, None)
                            else:
                                del first, second  # protect() would count these two references as other holders
                                append(protect(item))
                        else:
                            append(protect(item, _HOLDERS_OF_INPUT) if item is value else protect(item))
                if timers.due:  # a plain attribute: a property call per record is visible in the profile
                    timers.fire_due()
                    ctx.current_timestamp = None
                    append = collector.values.append
        except Exception as error:
            raise keyed_error(self.context, error, self.method, select, value) from None
        backend.clear_current_key()
        collector.flush()
