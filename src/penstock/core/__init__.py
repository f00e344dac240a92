"""The contracts between user code and the runtime: functions, state, timers, side outputs, sources and sinks."""
