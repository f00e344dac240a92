import pytest
from crashing import TROUBLE


@pytest.fixture(autouse=True)
def _no_trouble():
    TROUBLE.clear()
