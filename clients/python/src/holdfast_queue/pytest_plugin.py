"""The fixture `holdfast_fake`: all jobs that a test enqueues are kept in a list."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .testing import Fake, testing_all


@pytest.fixture
def holdfast_fake() -> Iterator[Fake]:
    with testing_all("fake") as fake:
        yield fake
