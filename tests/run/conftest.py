"""A small demo facility, made once."""

import pytest

from tests.support import demo


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory):
    """A data folder that holds a demo; tests that write copy it. Its name has a space, as people's folders do."""
    return demo.make_demo(tmp_path_factory.mktemp("demo") / "data of gatehouse")


@pytest.fixture
def demo_copy(demo_folder, tmp_path):
    """A copy that a test may write to."""
    return demo.copy_demo(demo_folder, tmp_path / "data")
