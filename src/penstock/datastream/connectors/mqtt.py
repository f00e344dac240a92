"""PyFlink's path to `penstock.connectors.mqtt`."""

from penstock.connectors.mqtt import *
from penstock.connectors.mqtt import __all__ as __all__
