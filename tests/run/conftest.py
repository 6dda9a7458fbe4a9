"""A small demo facility, prepared once a run."""

import pytest

from tests.support import demo


@pytest.fixture
def demo_copy(tmp_path):
    """A data folder with a demo in it. Its name has a space, as people's folders do."""
    return demo.demo_folder(tmp_path / "data of gatehouse")
