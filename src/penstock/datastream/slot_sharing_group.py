"""Groups of operators that may share a slot."""

from __future__ import annotations

from functools import total_ordering

from penstock.common.checks import is_int, require_name
from penstock.common.errors import InvalidProgramError
from penstock.common.unsupported import no_java_object

__all__ = ["MemorySize", "SlotSharingGroup"]


@total_ordering
class MemorySize:
    """A number of bytes.

    >>> MemorySize.of_mebi_bytes(2).get_kibi_bytes()
    2048
    """

    __slots__ = ("_bytes",)

    def __init__(self, bytes_size: int) -> None:
        if not is_int(bytes_size) or bytes_size < 0:
            raise InvalidProgramError(f"a memory size must be a number of bytes, got {bytes_size!r}")
        self._bytes = bytes_size

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        return self._bytes

    def get_kibi_bytes(self) -> int:
        return self._bytes >> 10

    def get_mebi_bytes(self) -> int:
        return self._bytes >> 20

    def get_gibi_bytes(self) -> int:
        return self._bytes >> 30

    def get_tebi_bytes(self) -> int:
        return self._bytes >> 40

    get_java_memory_size = no_java_object

    def __eq__(self, other: object) -> bool:
        return self._bytes == other._bytes if isinstance(other, MemorySize) else NotImplemented

    def __lt__(self, other: MemorySize) -> bool:
        return self._bytes < other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __repr__(self) -> str:
        return f"MemorySize({self._bytes})"


class SlotSharingGroup:
    """A named group of operators. Operators of different groups are never chained. Its resources are hints.

    >>> group = SlotSharingGroup.builder("heavy").set_cpu_cores(2.0).set_task_heap_memory_mb(100).build()
    >>> group.get_name(), group.get_cpu_cores(), group.get_task_heap_memory()
    ('heavy', 2.0, MemorySize(104857600))
    """

    def __init__(
        self,
        name: str,
        cpu_cores: float | None = None,
        task_heap_memory: MemorySize | None = None,
        task_off_heap_memory: MemorySize | None = None,
        managed_memory: MemorySize | None = None,
        external_resources: dict[str, float] | None = None,
    ) -> None:
        self._name = require_name(name, "the name of a slot sharing group")
        self._cpu_cores = cpu_cores
        self._task_heap_memory = task_heap_memory
        self._task_off_heap_memory = task_off_heap_memory
        self._managed_memory = managed_memory
        self._external_resources = dict(external_resources or {})

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        return self._name

    get_java_slot_sharing_group = no_java_object

    def get_cpu_cores(self) -> float | None:
        return self._cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        return self._task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        return self._task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        return self._managed_memory

    def get_external_resources(self) -> dict[str, float]:
        return dict(self._external_resources)

    def _identity(self) -> tuple[object, ...]:
        memory = (self._task_heap_memory, self._task_off_heap_memory, self._managed_memory)
        return (self._name, self._cpu_cores, *memory, tuple(sorted(self._external_resources.items())))

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, SlotSharingGroup) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    class Builder:
        """Collects the resources of a group."""

        def __init__(self, name: str) -> None:
            self._name = require_name(name, "the name of a slot sharing group")
            self._cpu_cores: float | None = None
            self._memory: dict[str, MemorySize] = {}
            self._external: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            if cpu_cores <= 0:
                raise InvalidProgramError(f"the number of CPU cores must be positive, got {cpu_cores}")
            self._cpu_cores = float(cpu_cores)
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            self._memory["task_heap_memory"] = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            self._memory["task_off_heap_memory"] = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            self._memory["managed_memory"] = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            self._external[name] = value
            return self

        def build(self) -> SlotSharingGroup:
            """Build the group. If it has any resource, it needs CPU cores and task heap memory."""
            heap = self._memory.get("task_heap_memory")
            if self._cpu_cores is not None and heap is not None and heap.get_bytes() > 0:
                none = MemorySize(0)
                memory = {"task_off_heap_memory": none, "managed_memory": none, **self._memory}
                return SlotSharingGroup(self._name, self._cpu_cores, external_resources=self._external, **memory)
            if self._cpu_cores is not None or self._memory or self._external:
                raise InvalidProgramError(
                    f"the slot sharing group {self._name!r} sets resources, so it needs positive CPU cores "
                    "and task heap memory"
                )
            return SlotSharingGroup(self._name)
