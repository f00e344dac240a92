"""Vertex-centric iterations: functions and configuration."""

from penstock.gelly.iterations.batches import BatchComputeFunction, VertexBatch
from penstock.gelly.iterations.configuration import VertexCentricConfiguration
from penstock.gelly.iterations.functions import ComputeFunction, MessageCombiner

__all__ = ["BatchComputeFunction", "ComputeFunction", "MessageCombiner", "VertexBatch", "VertexCentricConfiguration"]
