import pytest

from bursar.corpus import Corpus
from bursar.simulation import assistant_corpus


@pytest.fixture(scope="session")
def default_corpus() -> Corpus:
    """The corpus that everyone gets who asks for none in particular."""
    return assistant_corpus()


@pytest.fixture(scope="session")
def small_corpus() -> Corpus:
    return assistant_corpus(items=1500, seed=11)
