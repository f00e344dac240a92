"""The helpers beside the tests can be imported: window_driver, window_reference."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
