"""PyFlink's path to `penstock.connectors.nats`."""

from penstock.connectors.nats import *
from penstock.connectors.nats import __all__ as __all__
