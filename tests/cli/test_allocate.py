"""``bursar allocate``: what it splits, what it says of it, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

TABLE = """\
currency = "€"
joint_price = 0.22

[tasks.intent]
price = 0.05
beta = 0.6
low = 0.5
high = 0.7
block = 200
seed_score = 0.71

[tasks.slots]
price = 0.12
beta = 0.8
low = 0.7
high = 0.9
block = 200
seed_score = 0.55
min = 100

[tasks.urgency]
price = 0.04
beta = 0.3
low = 0.2
high = 0.5
block = 200
seed_score = 0.83
cap = 2000

[informativeness.intent]
slots = [0.25, 0.08]
urgency = [0.1, 0.1]

[informativeness.slots]
intent = [0.4, 0.1]
urgency = [0.15, 0.1]

[informativeness.urgency]
intent = [-0.1, 0.08]
slots = [-0.05, 0.05]
"""

HARMFUL = """\
task,price,beta,block,informs:a,informs:b
a,1,0.5,10,,-1.5
b,1,0.5,10,-1.2,
"""


@pytest.fixture
def allocate(bursar, tmp_path):
    (tmp_path / "tasks.toml").write_text(TABLE)
    (tmp_path / "harmful.csv").write_text(HARMFUL)
    return lambda *arguments: bursar("allocate", *arguments)


def test_help_has_two_examples(allocate):
    code, out, _ = allocate("--help")
    assert code == 0
    assert len(re.findall(r"bursar allocate --table", out)) == 2


def test_a_split_is_printed_with_its_reasons_what_it_hangs_on_and_what_else_there_is(allocate):
    code, out, errors = allocate("--table", "tasks.toml", "--budget", "150")
    assert (code, errors) == (0, "")
    assert out.startswith("Exact split of €150.00: €0.00 left")
    for said in (
        "A label of slots advances intent by 0.4 (± 0.1) labels of its own.",
        "One more label of urgency is worth half of the first after 115 labels",
        "If one estimate is wrong (18 cases, worst first)",
        "reduction rate of intent 0.7 instead of 0.6",
        "Other splits, with the same estimates",
        "equal money",
        "same items",
        "no transfer",
    ):
        assert said in out
    row = next(line for line in out.splitlines() if line.startswith("slots"))
    labels, money = row.split()[1:3]
    assert money == f"€{0.12 * int(labels):.2f}"


@pytest.mark.parametrize("method", ["exact", "greedy", "robust"])
def test_json_output_has_the_same_content(allocate, method):
    code, out, errors = allocate("--table", "tasks.toml", "--budget", "150.009", "--method", method, "--json")
    result = json.loads(out)
    assert (code, errors, out.count("\n")) == (0, "", 1)
    assert result["method"] == method
    assert result["budget"] == 150
    assert result["cost"] <= 150
    assert result["tasks"]["slots"]["labels"] >= 100
    assert result["tasks"]["urgency"]["labels"] <= 2000
    spent = {"intent": 0.05, "slots": 0.12, "urgency": 0.04}
    for task, price in spent.items():
        assert result["tasks"][task]["spent"] == pytest.approx(price * result["tasks"][task]["labels"])
    assert {"only slots", "difficulty", "random", "one rate"} <= {other["method"] for other in result["baselines"]}
    assert (result["robust"] is not None) == (method == "robust")
    assert result == json.loads(
        allocate("--table", "tasks.toml", "--budget", "150.009", "--method", method, "--json")[1]
    )


def test_a_robust_split_says_what_it_may_lose(allocate):
    code, out, _ = allocate("--table", "tasks.toml", "--budget", "150", "--method", "robust")
    assert code == 0
    assert "If any one estimate is wrong, this split loses at most" in out
    assert "No split can guarantee less than" in out


def test_a_budget_below_the_cheapest_label_has_a_clear_answer(allocate, tmp_path):
    (tmp_path / "tasks.toml").write_text(TABLE.replace("min = 100", ""))
    code, out, _ = allocate("--table", "tasks.toml", "--budget", "0.03")
    assert code == 0
    assert "€0.03 buys nothing: the cheapest label, of urgency, costs €0.04." in out


def test_negative_transfer_from_every_task_has_a_clear_answer(allocate):
    code, out, _ = allocate("--table", "harmful.csv", "--budget", "100")
    assert code == 0
    assert "No label of any task is worth its money" in out
    assert "Nothing is bought." in out
    assert "The estimates have no standard errors or intervals" in out
    assert "Not shown: same items" in out


def test_a_task_without_seed_labels_has_a_clear_answer(allocate, tmp_path):
    # Nothing is known of it: it has to be guessed, and said to be.
    new = "\n[tasks.mood]\nprice = 0.03\n"
    (tmp_path / "tasks.toml").write_text(TABLE + new)
    code, out, errors = allocate("--table", "tasks.toml", "--budget", "150")
    assert (code, out) == (2, "")
    line = (TABLE + new).splitlines().index("[tasks.mood]") + 1
    assert f"tasks.toml:{line}: task 'mood': beta is missing. Fix: label a few items of it" in errors
    (tmp_path / "tasks.toml").write_text(TABLE + new + "beta = 0.5\nlow = 0.000001\nhigh = 1\nblock = 200\n")
    code, out, _ = allocate("--table", "tasks.toml", "--budget", "150")
    assert code == 0
    assert "How fast labels of mood lose value is not known" in out
    assert "Not shown: difficulty: the seed score of mood is not known." in out


def test_names_are_shown_as_they_are(allocate, tmp_path):
    (tmp_path / "odd.csv").write_text("task,price,beta,block\n[bold]x[/bold],1,0.5,10\n")
    code, out, _ = allocate("--table", "odd.csv", "--budget", "10")
    assert code == 0
    assert "[bold]x[/bold]" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no campaign and no table given. Fix: name a campaign, or pass your own estimates"),
        (["campaign.toml", "--budget", "5"], "campaign.toml: there is no such file"),
        (["campaign.toml", "--table", "tasks.toml"], "both a campaign and a table given"),
        (["tasks.toml", "--budget", "5"], "tasks.toml is a table of estimates, not a campaign. Fix: use --table"),
        (["harmful.csv", "--budget", "5"], "harmful.csv is a table of estimates, not a campaign. Fix: use --table"),
        ([".", "--budget", "5"], ". holds no run"),
        (["--table", "tasks.toml"], "no budget given. Fix: pass one, such as --budget 6000"),
        (
            ["--table", "tasks.toml", "--budget", "5", "--rater", "law"],
            "--rater has no effect with a table",
        ),
        (["--table", "tasks.toml", "--budget", "much"], "--budget: 'much' is not a valid number"),
        (["--table", "tasks.toml", "--budget", "-5"], "--budget: '-5' is not a valid number"),
        (["--table", "tasks.toml", "--budget", "1e99"], "--budget 1E+99 is too large"),
        (["campaign.toml", "--budget", "1e13"], "--budget 1E+13 is too large"),
        (["--table", "tasks.toml", "--budget", "1e-99999999"], "--budget: '1e-99999999' is not a valid number"),
        (
            ["--table", "tasks.toml", "--budget", "150", "--page", "tasks.toml"],
            "--page tasks.toml is the input file",
        ),
        (
            ["--table", "tasks.toml", "--budget", "150", "--page", "/dev/null"],
            "--page /dev/null is not a regular file",
        ),
        (["--table", "none.toml", "--budget", "5"], "none.toml: there is no such file"),
        (["--table", "tasks.toml", "--budget", "150", "--page", "."], "--page . is a folder"),
        (
            ["--table", "harmful.csv", "--budget", "5", "--method", "together"],
            "Fix: give it (joint_price)",
        ),
        (
            ["--table", "tasks.toml", "--budget", "150", "--method", "magic"],
            "--method magic: unknown value. Fix: use exact, greedy, together or robust",
        ),
        (
            ["--table", "tasks.toml", "--budget", "11.99"],
            "the minimums cost €12.00, and the budget is €11.99: task 'slots' alone has 100 labels at €0.12",
        ),
    ],
)
def test_what_is_wrong_ends_with_2_and_a_sentence_and_leaves_nothing(allocate, tmp_path, arguments, said):
    before = sorted(tmp_path.iterdir())
    code, out, errors = allocate(*arguments)
    assert (code, out) == (2, "")
    assert said in errors
    assert "Traceback" not in errors
    assert sorted(tmp_path.iterdir()) == before


# -- the documentation -----------------------------------------------------------------------------------------------
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "allocation.md"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_example_of_the_documentation_prints_what_is_shown(allocate, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    shown = next(block for block in blocks("console") if "--table tasks.toml" in block)
    (tmp_path / "tasks.toml").write_text(blocks("toml")[0])
    code, out, _ = allocate("--table", "tasks.toml", "--budget", "150")
    assert code == 0
    assert [line.rstrip() for line in out.splitlines()] == [*shown.splitlines()[1:], ""]


def test_the_error_of_the_documentation_is_the_one_that_is_met(allocate, tmp_path):
    shown = next(block for block in blocks("console") if "typo.toml" in block)
    (tmp_path / "typo.toml").write_text(blocks("toml")[0].replace("beta = 0.6", "beta = 1.6"))
    assert allocate("--table", "typo.toml", "--budget", "150")[2] == shown.splitlines()[1] + "\n"


def test_the_csv_and_the_python_of_the_documentation_work(allocate, tmp_path):
    (tmp_path / "tasks.csv").write_text(blocks("csv")[0])
    assert allocate("--table", "tasks.csv", "--budget", "150")[0] == 0
    (tmp_path / "tasks.toml").write_text(blocks("toml")[0])
    found = {}
    exec(blocks("python")[0], found)
    assert found["split"].cost == 15_000


def test_a_campaign_is_measured_and_split_and_has_a_page(allocate, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'tasks = ["intent", "urgency"]\n[corpus]\nitems = 300\n[budget]\nseed_items = 60\n[learner]\nname = "probe"\n'
    )
    arguments = ["mine.toml", "--budget", "600", "--informer", "probe", "--page", "mine.html", "--json"]
    code, out, errors = allocate(*arguments)
    found = json.loads(out)
    assert code == 0
    assert found["method"] == "together"
    assert found["measured"]["informer"] == "probe"
    assert 0 < found["cost"] <= 600
    assert "Which tasks help which" in (tmp_path / "mine.html").read_text()
    assert "Page: mine.html" in errors


def test_a_campaign_over_items_without_labels_goes_by_those_that_there_are(allocate, tmp_path):
    kinds = {"intent": ["ask", "thank"], "polite": ["no", "yes"]}
    tasks = {task: {"kind": "classification", "labels": labels} for task, labels in kinds.items()}
    rows = []
    for number in range(120):
        asks, please = number % 2, number % 3 == 0
        text = ("where is" if asks else "thanks for") + f" item {number}" + (" please" if please else "")
        labels = {"intent": kinds["intent"][1 - asks], "polite": kinds["polite"][please]}
        rows.append({"id": f"i{number:03}", "text": text, "labels": labels})
    campaign = '[corpus]\nsource = "items.jsonl"\n[budget]\nseed_items = 30\n[learner]\nname = "probe"\n'
    (tmp_path / "mine.toml").write_text(campaign)

    def labelled(**many):
        some = [{"bursar": 1, "tasks": tasks}]
        for number, row in enumerate(rows):
            labels = {task: row["labels"][task] for task in tasks if number < many.get(task, 0)}
            some.append({**row, "labels": labels})
        (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
        return allocate("mine.toml", "--budget", "200", "--informer", "probe", "--json")

    code, out, _ = labelled(intent=20, polite=20)
    assert code == 0
    assert 0 < json.loads(out)["cost"] <= 200
    before = sorted(tmp_path.iterdir())
    for many, said in (
        ({}, "tasks 'intent', 'polite' have no seed labels"),
        ({"intent": 20}, "task 'polite' has no seed labels"),
        ({"intent": 20, "polite": 5}, "task 'polite' has 5 seed labels: too few to hold any out. Fix: label at least"),
    ):
        code, out, errors = labelled(**many)
        assert (code, out) == (2, "")
        assert said in errors
    assert sorted(tmp_path.iterdir()) == before
