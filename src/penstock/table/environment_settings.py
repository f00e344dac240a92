"""The settings of a table environment."""

from __future__ import annotations

from penstock.common.configuration import Configuration

__all__ = ["EnvironmentSettings"]


class EnvironmentSettings:
    """Streaming or batch mode, and the configuration."""

    def __init__(
        self, *, streaming: bool = True, configuration: Configuration | None = None, catalog: str = "default_catalog",
        database: str = "default_database",
    ) -> None:  # fmt: skip
        self._streaming = streaming
        self._configuration = Configuration() if configuration is None else configuration
        self._catalog = catalog
        self._database = database

    @staticmethod
    def new_instance() -> Builder:
        """Create a builder."""
        return Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Create settings for streaming mode, the default."""
        return EnvironmentSettings()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Create settings for batch mode."""
        return EnvironmentSettings(streaming=False)

    def is_streaming_mode(self) -> bool:
        return self._streaming

    def get_configuration(self) -> Configuration:
        return self._configuration

    def get_built_in_catalog_name(self) -> str:
        return self._catalog

    def get_built_in_database_name(self) -> str:
        return self._database


class Builder:
    """Builds the settings."""

    def __init__(self) -> None:
        self._streaming = True
        self._configuration: Configuration | None = None
        self._catalog = "default_catalog"
        self._database = "default_database"

    def in_streaming_mode(self) -> Builder:
        """Use streaming mode."""
        self._streaming = True
        return self

    def in_batch_mode(self) -> Builder:
        """Use batch mode."""
        self._streaming = False
        return self

    def with_configuration(self, config: Configuration) -> Builder:
        """Set options; ``execution.runtime-mode`` also sets the mode."""
        self._configuration = config
        mode = config.get_string("execution.runtime-mode")
        if mode is not None:
            self._streaming = mode.upper() != "BATCH"
        return self

    def with_built_in_catalog_name(self, built_in_catalog_name: str) -> Builder:
        """Set the name of the default catalog."""
        self._catalog = built_in_catalog_name
        return self

    def with_built_in_database_name(self, built_in_database_name: str) -> Builder:
        """Set the name of the default database."""
        self._database = built_in_database_name
        return self

    def build(self) -> EnvironmentSettings:
        """Build the settings."""
        return EnvironmentSettings(
            streaming=self._streaming,
            configuration=self._configuration,
            catalog=self._catalog,
            database=self._database,
        )


EnvironmentSettings.Builder = Builder  # type: ignore[attr-defined]
