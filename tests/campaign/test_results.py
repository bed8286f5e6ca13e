"""Results as JSON: what is written is read back, and another version is refused."""

from __future__ import annotations

import json

import pytest

from bursar.campaign.results import SCHEMA_VERSION, RunResult
from bursar.errors import ConfigError
from tests.report.results import make_result


def test_a_result_is_read_back_as_it_was_written():
    result = make_result({"MT-AVG": (0.4, 0.6), "RANDOM": (0.4, 0.5)}, money=(100, 200), audit=5)
    assert RunResult.from_json(json.dumps(result.to_json())) == result


@pytest.mark.parametrize("version", [None, 0, SCHEMA_VERSION + 1])
def test_a_result_of_another_version_is_refused_with_both_versions(version):
    table = make_result().to_json() | {"schema_version": version}
    with pytest.raises(ConfigError, match=f"schema version {version}, and this Bursar reads version {SCHEMA_VERSION}"):
        RunResult.from_json(json.dumps(table))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 1}'])
def test_what_is_no_result_is_refused(text):
    with pytest.raises(ConfigError):
        RunResult.from_json(text)
