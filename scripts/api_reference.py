"""The API reference of the guide, from docstrings and signatures. `make docs` makes it."""

import importlib
import inspect
import re
from typing import Any

# The title of a section: a module, and which of its names; none means all that it exports.
SECTIONS = {
    "Environment": ("penstock.datastream", "StreamExecutionEnvironment"),
    "Streams": (
        "penstock.datastream",
        (
            "DataStream KeyedStream ConnectedStreams WindowedStream AllWindowedStream JoinedStreams CoGroupedStreams "
            "IntervalJoin BroadcastStream BroadcastConnectedStream DataStreamSink AsyncDataStream"
        ),
    ),
    "Results": ("penstock.datastream", "CloseableIterator"),
    "Functions": (
        "penstock.datastream",
        (
            "MapFunction FlatMapFunction FilterFunction ReduceFunction AggregateFunction ProcessFunction "
            "KeyedProcessFunction CoProcessFunction KeyedCoProcessFunction BroadcastProcessFunction "
            "KeyedBroadcastProcessFunction ProcessWindowFunction ProcessAllWindowFunction ProcessJoinFunction "
            "AsyncFunction RuntimeContext OutputTag"
        ),
    ),
    "Plain functions with state": ("penstock.datastream.stateful_function", "Timers"),
    "State": (
        "penstock.datastream.state",
        (
            "ValueState ListState MapState ReducingState AggregatingState ValueStateDescriptor ListStateDescriptor "
            "MapStateDescriptor ReducingStateDescriptor AggregatingStateDescriptor StateTtlConfig"
        ),
    ),
    "Windows in a word": ("penstock.core.window.shorthand", ""),
    "Windows": (
        "penstock.datastream.window",
        (
            "TumblingEventTimeWindows SlidingEventTimeWindows EventTimeSessionWindows TumblingProcessingTimeWindows "
            "SlidingProcessingTimeWindows ProcessingTimeSessionWindows GlobalWindows CountTrigger PurgingTrigger "
            "ContinuousEventTimeTrigger Trigger Evictor WindowAssigner"
        ),
    ),
    "Aggregates": (
        "penstock.datastream.aggregates",
        "Count Sum Min Max Mean Quantile Top CountDistinct Collect",
    ),
    "Time and watermarks": ("penstock.common", "Duration Time WatermarkStrategy WatermarkGenerator TimestampAssigner"),
    "Formats of records": ("penstock.formats.records", "Json Csv Text"),
    "Files": ("penstock.connectors.file_system", "FileSource FileSink"),
    "Kafka": ("penstock.connectors.kafka", "KafkaSource KafkaSink KafkaOffsetsInitializer"),
    "Databases": ("penstock.connectors.jdbc", "JdbcSink"),
    "One source after the other": ("penstock.connectors.hybrid_source", "HybridSource"),
    "Testing": ("penstock.testing", "Scenario given FunctionHarness MiniCluster MiniClusterJob ManualClock"),
}

_HEAD = """\
# API reference

The classes that most programs use, from their docstrings. `import penstock as ps` offers most of them as `ps.Name`.
[PyFlink's names](pyflink-names.md) lists every name that PyFlink has.
"""


def signature_of(name: str, value: Any) -> str:
    """A call as one would write it, without annotations."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    text = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    return f"{name}{re.sub(r'<([^<>]*) at 0x[0-9a-f]+>', '...', text)}"


def prose(docstring: str | None) -> str:
    """A docstring as Markdown: examples in fences, literals in single quotes, references as names."""
    text = inspect.cleandoc(docstring or "")
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    text = re.sub(r"^:param (\w+): ", r"- `\1`: ", text, flags=re.MULTILINE)
    text = re.sub(r"([^\n])\n(- `)", r"\1\n\n\2", text, count=1)
    parts, example = [], []
    for line in [*text.split("\n"), ""]:
        if line.startswith((">>>", "...")) or (example and line):
            example.append(line)
            continue
        if example:
            parts += ["```pycon", *example, "```"]
            example = []
        parts.append(line)
    return "\n".join(parts).strip()


def methods_of(cls: type) -> dict[str, Any]:
    """The public methods that a class defines itself or takes from a base of ours without documentation of its own."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("penstock") and base.__name__ not in ("Function", "State", "Sink", "Source"):
            found.update(
                {name: value for name, value in vars(base).items() if not name.startswith("_") and is_method(value)}
            )
    return {name: value for name, value in found.items() if inspect.getdoc(plain(value))}


def is_method(value: object) -> bool:
    """Whether an attribute of a class is something to call, or a property."""
    return inspect.isfunction(value) or isinstance(value, (staticmethod, classmethod, property))


def plain(value: Any) -> Any:
    """The function behind a method or a property."""
    return value.fget if isinstance(value, property) else getattr(value, "__func__", value)


def class_entry(name: str, cls: type, where: str) -> list[str]:
    """A class: what it is, and its methods in a table."""
    call = name if inspect.isabstract(cls) or is_interface(cls) else signature_of(name, cls)
    lines = [f"### {name}", "", f"`{where}.{name}`", "", "```text", f"{call}", "```", "", prose(cls.__doc__), ""]
    init = vars(cls).get("__init__")
    if init is not None and init.__doc__:
        lines += [prose(init.__doc__), ""]
    methods = methods_of(cls)
    if methods:
        lines += ["| | |", "|---|---|"]
        for method, value in methods.items():
            called = method if isinstance(value, property) else signature_of(method, plain(value))
            first = " ".join(prose(plain(value).__doc__).split("\n\n")[0].split("```")[0].split())
            lines.append(f"| `{escaped(called)}` | {escaped(first)} |")
        lines.append("")
    return lines


def is_interface(cls: type) -> bool:
    """Whether programs meet objects of the class but make none."""
    return inspect.signature(cls).parameters.keys() & {"args", "kwargs", "transformation", "env"} != set()


def escaped(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|")


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    for title, (where, names) in SECTIONS.items():
        module = importlib.import_module(where)
        lines += [f"## {title}", ""]
        for name in names.split() or module.__all__:
            value = getattr(module, name)
            if isinstance(value, type):
                lines += class_entry(name, value, where)
            else:
                lines += [
                    f"### {name}",
                    "",
                    f"`{where}.{name}`",
                    "",
                    "```text",
                    signature_of(name, value),
                    "```",
                    "",
                ]
                lines += [prose(value.__doc__), ""]
    return "\n".join(lines).rstrip() + "\n"
