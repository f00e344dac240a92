"""PyFlink's path to `penstock.connectors.rabbitmq`."""

from penstock.connectors.rabbitmq import *
from penstock.connectors.rabbitmq import __all__ as __all__
