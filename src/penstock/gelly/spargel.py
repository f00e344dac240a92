"""Scatter-gather iterations: functions and configuration."""

from penstock.gelly.iterations.configuration import ScatterGatherConfiguration
from penstock.gelly.iterations.functions import GatherFunction, ScatterFunction

__all__ = ["GatherFunction", "ScatterFunction", "ScatterGatherConfiguration"]
