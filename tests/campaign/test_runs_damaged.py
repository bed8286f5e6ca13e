"""A run whose file of settings is not one."""

from __future__ import annotations

import pytest

from bursar.campaign import Run
from bursar.campaign.config import CONFIG_FILE
from bursar.errors import ConfigError


@pytest.mark.parametrize("text", ["{}", "[]", '{"campaign": 3, "corpus": "x"}', '{"campaign": {}}', "no JSON"])
def test_a_damaged_run_is_named_and_not_a_surprise(tmp_path, text):
    (tmp_path / CONFIG_FILE).write_text(text)
    with pytest.raises(ConfigError, match=CONFIG_FILE):
        Run.open(tmp_path)
