"""Every code block of the documents: Python runs, settings are valid, commands have the options that they are given."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.doc_blocks import PAGES, ROOT, Block, blocks, run_page

ELSEWHERE = {  # pages whose Python is tested by files of their own: it registers parts and adds files
    "docs/guides/extending.md": ["tests/test_extending.py", "tests/web/test_panels.py"],
}
PYTHON = {
    page: list(found)
    for page, found in groupby(blocks("python"), key=lambda block: block.page)
    if page not in ELSEWHERE
}


def test_blocks_of_other_languages_are_known():
    known = {"", "python", "toml", "sh", "console", "json", "csv", "js"}
    assert sorted({block.language for block in blocks(*everything())} - known) == []


def everything() -> set[str]:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    return set(re.findall(r"^ *```(\w*)$", text, re.MULTILINE))


@pytest.mark.parametrize("page", PYTHON)
def test_the_python_of_a_page_runs(page, tmp_path):
    table = next(block.code for block in blocks("toml") if "informativeness" in block.code)
    run_page(page, PYTHON[page], tmp_path, table)


def test_pages_that_are_tested_elsewhere_are_named_there():
    for page, files in ELSEWHERE.items():
        for file in files:
            assert Path(page).name in (ROOT / file).read_text(encoding="utf-8")


# -- settings --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_toml_is_a_campaign_or_what_its_page_says(block, tmp_path):
    found = tomllib.loads(block.code)
    if "project" in found:
        groups = found["project"]["entry-points"]
        assert all(f"`{name}`" in (ROOT / block.page).read_text(encoding="utf-8") for name in groups)
    elif isinstance(found.get("tasks"), dict):
        from bursar.allocation import read_estimate_table

        (tmp_path / "tasks.toml").write_text(block.code, encoding="utf-8")
        assert read_estimate_table(tmp_path / "tasks.toml").problem(150)
    else:
        check_campaign(block.code, tmp_path)


def check_campaign(text: str, folder: Path) -> None:
    """Load it as ``bursar run`` does, with a learned policy beside it."""
    import bursar
    from bursar.curriculum import make_policy

    (folder / "policies").mkdir()
    make_policy("fixed", weights={"intent": 1.0, "slots": 2.0}).save(folder / "policies" / "learned.json")
    named = text if re.search(r"^(tasks =|\[corpus\])", text, re.MULTILINE) else f'tasks = ["intent"]\n{text}'
    for policy in ("uniform", "policies/learned.json"):
        (folder / "campaign.toml").write_text(named.replace('policy = "exp3s"', f'policy = "{policy}"'), "utf-8")
        assert bursar.load_config(folder / "campaign.toml")


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_is_a_corpus(block, tmp_path):
    import bursar

    (tmp_path / "found.jsonl").write_text(block.code, encoding="utf-8")
    assert len(bursar.read(tmp_path / "found.jsonl")) == len(block.code.splitlines()) - 1


@pytest.mark.parametrize("block", blocks("csv"), ids=str)
def test_csv_is_read_by_the_command_of_its_page(block, tmp_path):
    from bursar.allocation import read_estimate_table
    from bursar.selection.scores import read_scores

    path = tmp_path / "found.csv"
    path.write_text(block.code, encoding="utf-8")
    read = read_scores if block.page.endswith("select.md") else read_estimate_table
    assert read(path)


# -- commands --------------------------------------------------------------------------------------------------------
@cache
def command_line(program: str) -> Any:
    import typer

    from bursar.cli import app
    from experiments.__main__ import app as experiments

    return typer.main.get_command(app if program == "bursar" else experiments)


def check_command(words: list[str]) -> None:
    """Parse a command without running it."""
    command, name = command_line("bursar"), "bursar"
    if words[:3] == ["python", "-m", "experiments"]:
        command, name, words = command_line("experiments"), "experiments", words[2:]
    words = words[1:]
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, name, words = command.commands[words[0]], f"{name} {words[0]}", words[1:]
    assert not hasattr(command, "commands") or words in ([], ["--help"], ["--install-completion"]), (name, words)
    if not hasattr(command, "commands"):
        command.make_context(name, list(words))


def commands_of(block: Block) -> list[list[str]]:
    """The commands of ours in a shell block, without prompts, comments, redirections and what they are piped from."""
    lines = block.code.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    found = []
    for line in lines:
        for part in re.split(r" \| | && ", line):
            words = shlex.split(part, comments=True)
            if words and Path(words[0]).name == "bursar":
                found.append(["bursar", *words[1:]])
            elif words[:3] == ["python", "-m", "experiments"]:
                found.append(words)
    return found


COMMANDS = [(block, words) for block in blocks("sh", "console", "") for words in commands_of(block)]


@pytest.mark.parametrize(("block", "words"), COMMANDS, ids=[f"{block}-{words[1]}" for block, words in COMMANDS])
def test_a_command_in_a_block_has_the_arguments_and_options_that_it_is_given(block, words):
    check_command(words)


def test_a_wrong_option_is_found():
    assert len(COMMANDS) > 60
    with pytest.raises(Exception, match="No such option"):
        check_command(["bursar", "run", "campaign.toml", "--sede", "3"])
    with pytest.raises(AssertionError):
        check_command(["bursar", "rum", "campaign.toml"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_in_the_text_exist(page):
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`(bursar [^`\n]+)`", text):
        command, words = command_line("bursar"), code.split()[1:]
        while hasattr(command, "commands") and words and words[0] in command.commands:
            command, words = command.commands[words[0]], words[1:]
        flags = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)} | {"--help"}
        used = re.findall(r"(?<!\S)--[a-z-]+", " ".join(words))
        assert set(used) <= flags | {"--install-completion"}, code
        assert not hasattr(command, "commands") or not words or not re.match(r"[a-z]", words[0]), code


def test_targets_of_make_in_the_documents_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    used = set(re.findall(r"(?:^|`)make ([a-z-]+)", "\n".join(page.read_text("utf-8") for page in PAGES), re.MULTILINE))
    assert used <= targets
    assert {"demo", "test", "docs"} <= used


def test_openapi_calls_in_blocks_exist():
    """The paths that examples with curl call."""
    from bursar.web.server import make_app

    class NoProject:
        def __getattr__(self, name):
            return None

    known = set(make_app(NoProject()).app.openapi()["paths"])
    called = set(re.findall(r"http://127\.0\.0\.1:8000(/api/\w+)", "".join(block.code for block in blocks("sh"))))
    assert called
    assert called <= known, json.dumps(sorted(called - known))
