"""Gather-sum-apply iterations: functions and configuration."""

from penstock.gelly.elements import Neighbor
from penstock.gelly.iterations.configuration import GSAConfiguration
from penstock.gelly.iterations.functions import ApplyFunction, SumFunction
from penstock.gelly.iterations.functions import GSAGatherFunction as GatherFunction

__all__ = ["ApplyFunction", "GSAConfiguration", "GatherFunction", "Neighbor", "SumFunction"]
