"""Types of dates and times, as ``datetime`` values."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from enum import Enum
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo.base import TypeInformation, mismatch
from penstock.common.typeinfo.java_text import java_local_time, java_timestamp

__all__ = [
    "DateTypeInfo",
    "LocalTimeTypeInfo",
    "LocalZonedTimestampTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
]


def _is_date(value: Any) -> bool:
    return isinstance(value, date) and not isinstance(value, datetime)


class SqlTimeTypeInfo(TypeInformation):
    """SQL's dates and times: ``DATE``, ``TIME``, ``TIMESTAMP``."""

    __slots__ = ()

    @staticmethod
    def DATE() -> SqlTimeTypeInfo:
        return DateTypeInfo()

    @staticmethod
    def TIME() -> SqlTimeTypeInfo:
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> SqlTimeTypeInfo:
        return TimestampTypeInfo()

    def _identity(self) -> tuple[Any, ...]:
        return ()


class DateTypeInfo(SqlTimeTypeInfo):
    """``datetime.date`` values."""

    __slots__ = ()

    EPOCH_ORDINAL = date(1970, 1, 1).toordinal()

    def validate(self, value: Any) -> str | None:
        return None if value is None or _is_date(value) else mismatch("SQL_DATE", value)

    def format(self, value: Any) -> str:
        return "null" if value is None else str(value.isoformat())

    def to_ddl(self) -> str:
        return "date"

    def __repr__(self) -> str:
        return "SqlDate"


class TimeTypeInfo(SqlTimeTypeInfo):
    """``datetime.time`` values; Spark stores their ISO text."""

    __slots__ = ()

    EPOCH_ORDINAL = date(1970, 1, 1).toordinal() * 86_400 * 10**6

    def validate(self, value: Any) -> str | None:
        return None if value is None or isinstance(value, time) else mismatch("SQL_TIME", value)

    def format(self, value: Any) -> str:
        return "null" if value is None else f"{value:%H:%M:%S}"

    def to_ddl(self) -> str:
        return "string"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return None if obj is None else obj.isoformat()

    def from_internal_type(self, obj: Any) -> Any:
        return None if obj is None else time.fromisoformat(obj)

    def __repr__(self) -> str:
        return "SqlTime"


class TimestampTypeInfo(SqlTimeTypeInfo):
    """``datetime.datetime`` values."""

    __slots__ = ()

    def validate(self, value: Any) -> str | None:
        return None if value is None or isinstance(value, datetime) else mismatch("SQL_TIMESTAMP", value)

    def format(self, value: Any) -> str:
        return "null" if value is None else java_timestamp(value)

    def to_ddl(self) -> str:
        return "timestamp_ntz"

    def __repr__(self) -> str:
        return "SqlTimestamp"


class LocalZonedTimestampTypeInfo(TypeInformation):
    """Points in time, as SQL's TIMESTAMP_LTZ has them: read as ``datetime`` values with a time zone.

    An ``Instant`` may be written, too, and a datetime without a time zone, which is in UTC.
    """

    __slots__ = ()

    def validate(self, value: Any) -> str | None:
        return None if value is None or isinstance(value, (datetime, Instant)) else mismatch("TIMESTAMP_LTZ", value)

    def format(self, value: Any) -> str:
        if isinstance(value, datetime):
            value = Instant.from_datetime(value)
        return "null" if value is None else str(value)

    def to_ddl(self) -> str:
        return "timestamp"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return obj.to_datetime() if isinstance(obj, Instant) else obj

    def from_internal_type(self, obj: Any) -> Any:
        """A value that has a time zone, whatever the system that stored it does about them.

        >>> LocalZonedTimestampTypeInfo().from_internal_type(datetime(2024, 3, 1, 12))
        datetime.datetime(2024, 3, 1, 12, 0, tzinfo=datetime.timezone.utc)
        """
        return obj.replace(tzinfo=UTC) if isinstance(obj, datetime) and obj.tzinfo is None else obj

    def _identity(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return "LocalZonedTimestamp"


class LocalTimeTypeInfo(TypeInformation):
    """Dates and times without a time zone: ``LOCAL_DATE``, ``LOCAL_TIME``, ``LOCAL_DATE_TIME``."""

    __slots__ = ("time_type",)

    class TimeType(Enum):
        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    def __init__(self, time_type: LocalTimeTypeInfo.TimeType) -> None:
        self.time_type = time_type

    def validate(self, value: Any) -> str | None:
        kind = self.time_type
        fits = (
            value is None
            or (kind is LocalTimeTypeInfo.TimeType.LOCAL_DATE and _is_date(value))
            or (kind is LocalTimeTypeInfo.TimeType.LOCAL_TIME and isinstance(value, time))
            or (kind is LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME and isinstance(value, datetime))
        )
        return None if fits else mismatch(kind.name, value)

    def format(self, value: Any) -> str:
        return "null" if value is None else java_local_time(value)

    def to_ddl(self) -> str:
        return ("date", "string", "timestamp_ntz")[self.time_type.value]

    def need_conversion(self) -> bool:
        return self.time_type is LocalTimeTypeInfo.TimeType.LOCAL_TIME

    def to_internal_type(self, obj: Any) -> Any:
        return obj.isoformat() if obj is not None and self.need_conversion() else obj

    def from_internal_type(self, obj: Any) -> Any:
        return time.fromisoformat(obj) if obj is not None and self.need_conversion() else obj

    def _identity(self) -> tuple[Any, ...]:
        return (self.time_type,)

    def __repr__(self) -> str:
        return {0: "LocalDate", 1: "LocalTime", 2: "LocalDateTime"}[self.time_type.value]
