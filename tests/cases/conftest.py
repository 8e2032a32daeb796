"""Products in temporary homes, closed when the test is over."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cases.adapter import Product


@pytest.fixture
def product(tmp_path) -> Iterator[Callable[..., Product]]:
    made: list[Product] = []

    def make(**given: Any) -> Product:
        made.append(Product(tmp_path / f"home{len(made)}", **given))
        return made[-1]

    yield make
    for one in made:
        one.close()
