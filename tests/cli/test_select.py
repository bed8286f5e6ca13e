"""``bursar select``: what it buys, what it says of it, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import time
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

SCORES = '''\
id,text,confidence:intent,confidence:slots,cost:reading,cost:intent,cost:slots,group,hours:ana:slots
u1,"wake me, please",0.91,0.80,4,3,1.5,a,0.5
u2,play jazz,0.35,0.60,2,3,1.5,a,0.25
u3,stop,0.40,0.95,1,3,0.5,b,0.25
u4,what is on in Kyoto,0.75,0.20,6,3,2.5,b,1
007,"call ""mum""",0.55,0.50,2,3,1,c,0.5
'''


@pytest.fixture
def bursar(bursar, tmp_path):
    (tmp_path / "scores.csv").write_text(SCORES)
    return partial(bursar, "select")


@pytest.fixture
def select_json(bursar):
    """Run the command with ``--json`` and give its output."""

    def run(*arguments):
        code, out, err = bursar(*arguments, "--json")
        assert (code, err, out.count("\n")) == (0, "", 1)
        found = json.loads(out)
        assert list(found) == ["objective", "bound", "optimal", "cost", "items", "seconds"]
        assert found.pop("seconds") >= 0
        return found

    return run


# -- what is bought --------------------------------------------------------------------------------------------------
def random_table(rng, path):
    """A few items with fractional costs: confidence, reading, own."""
    items, tasks = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    confidence = np.round(rng.random((items, tasks)), 2)
    reading, own = np.round(3 * rng.random(items), 1), np.round(4 * rng.random((items, tasks)), 2)
    names = [f"t{n}" for n in range(tasks)]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"confidence:{n}" for n in names), "cost:reading", *(f"cost:{n}" for n in names)])
        writer.writerows([f"u{n}", *confidence[n], reading[n], *own[n]] for n in range(items))
    return confidence, reading, own


def best_by_trying(values, costs, budget):
    """The best sum of values, one choice of each row, within the budget; costs are in cents."""
    best = 0.0
    for choice in product(*(range(len(row)) for row in values)):
        if sum(costs[row][at] for row, at in enumerate(choice)) <= budget:
            best = max(best, sum(values[row][at] for row, at in enumerate(choice)))
    return best


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("mode", ["avg", "max", "min", "disjoint", "single"])
def test_exact_spending_finds_what_trying_everything_finds(select_json, tmp_path, mode, seed):
    rng = np.random.default_rng(seed)
    confidence, reading, own = random_table(rng, tmp_path / "small.csv")
    items, tasks = confidence.shape
    budget = round(float(rng.random() * (reading.sum() + own.sum())), 3)
    cents_of_reading, cents = np.rint(100 * reading).astype(int), np.rint(100 * own).astype(int)
    if mode == "disjoint":
        subsets = [np.array(s, dtype=bool) for s in product([False, True], repeat=tasks)]
        values = [[float((1 - confidence[i])[s].sum()) for s in subsets] for i in range(items)]
        costs = [[int(cents[i][s].sum() + cents_of_reading[i] * s.any()) for s in subsets] for i in range(items)]
        options = ["--mode", "disjoint"]
    else:
        how = {"avg": np.mean, "max": np.max, "min": np.min, "single": lambda row: row[-1]}[mode]
        values = [[0.0, 1 - float(how(confidence[i]))] for i in range(items)]
        costs = [[0, int(cents[i].sum() + cents_of_reading[i])] for i in range(items)]
        options = ["--mode", f"single:t{tasks - 1}"] if mode == "single" else ["--combine", mode]
    found = select_json("small.csv", "--budget", budget, *options, "--out", "chosen.csv")
    assert found["objective"] == pytest.approx(best_by_trying(values, costs, int(100 * budget + 1e-6)), abs=1e-9)
    assert found["bound"] == pytest.approx(found["objective"])
    assert found["optimal"] is True
    with open(tmp_path / "chosen.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == found["items"]
    assert sum(float(row["cost"]) for row in rows) == pytest.approx(found["cost"])
    assert found["cost"] <= budget
    for row in rows:
        item, bought = int(row["id"][1:]), [int(name[1:]) for name in row["tasks"].split(";")]
        assert float(row["cost"]) == pytest.approx(reading[item] + own[item, bought].sum())


def test_the_best_item_comes_first_and_costs_come_back_as_they_were_given(bursar):
    code, out, err = bursar("scores.csv", "--budget", "20")
    assert code == 0
    assert out == "id,tasks,cost\nu2,intent;slots,6.5\n007,intent;slots,6\nu3,intent;slots,4.5\n"
    assert "3 items, 6 labels, 17 of 20 spent; proven optimal" in err
    assert "Ignored columns: text" in err


def test_a_budget_that_is_met_to_the_cent_is_not_missed(select_json):
    assert select_json("scores.csv", "--budget", "17.0")["items"] == 3
    assert select_json("scores.csv", "--budget", "16.999999999999999999")["cost"] < 17


@pytest.mark.parametrize(
    ("budget", "options", "objective"),
    [
        ("20", ["--spend", "greedy"], 0.525 + 0.525),  # u2, then u4 at the same doubt; nothing else is affordable
        ("6.5", ["--combine", "rrf"], 1 / 61 + 1 / 63),  # u2 is the least confident in intent and third in slots
        ("20", ["--mode", "single:slots", "--spend", "greedy"], 0.8 + 0.5),  # u4 and 007
        ("9", ["--mode", "disjoint", "--spend", "greedy"], 0.8),  # u4 for slots takes 8.5
        ("9", ["--mode", "equal"], 0.6 + 0.5 + 0.05),  # of 4.5 each: u3 for intent (4); 007 (3) and u3 (1.5) for slots
    ],
)
def test_the_objective_is_the_uncertainty_of_the_selection(select_json, budget, options, objective):
    assert select_json("scores.csv", "--budget", budget, *options)["objective"] == pytest.approx(objective)


@pytest.mark.parametrize(
    ("options", "objective"),
    [(["--mode", "equal"], True), (["--combine", "par"], False), (["--combine", "ind"], False)],
)
def test_without_a_guarantee_there_is_no_bound(select_json, options, objective):
    found = select_json("scores.csv", "--budget", "20", *options)
    assert found["items"] > 0
    assert (found["objective"] is not None) is objective
    assert (found["bound"], found["optimal"]) == (None, False)


@pytest.mark.parametrize("options", [["--mode", "equal"], ["--combine", "par"], ["--spend", "greedy"]])
def test_the_summary_says_how_good_the_selection_is(bursar, options):
    code, out, _ = bursar("scores.csv", "--budget", "20", *options, "--out", "chosen.csv")
    said = {
        "equal": "no guarantee for equal shares",
        "par": "MT-PAR has no scores to compare",
        "greedy": "% below the optimum",
    }[options[-1]]
    assert code == 0
    assert said in out
    assert "Saved to chosen.csv" in out


def test_a_budget_of_items_counts_items_and_prints_their_cost(select_json, bursar):
    found = select_json("scores.csv", "--budget", "2", "--items", "--mode", "disjoint")
    # u2 (0.65 + 0.4) and u4 (0.25 + 0.8) are the most doubtful; they cost 6.5 and 11.5.
    assert found["objective"] == found["bound"] == pytest.approx(2.1)
    assert (found["cost"], found["items"]) == (18, 2)
    assert "2 items of 2, 4 labels, 18 spent" in bursar("scores.csv", "--budget", "2", "--items")[2]


def test_weights_say_how_much_a_task_counts(bursar):
    first = {
        weights: bursar("scores.csv", "--budget", "1", "--items", "--weights", weights)[1].splitlines()[1].split(",")[0]
        for weights in ("intent=1", "slots=1", "intent=0.7, slots=0.3")
    }
    assert first == {"intent=1": "u2", "slots=1": "u4", "intent=0.7, slots=0.3": "u2"}


def test_a_budget_beyond_all_counting_buys_everything(bursar):
    # 8.5 + 6.5 + 4.5 + 11.5 + 6
    assert "5 items, 10 labels, 37 of 1E+999999999 spent" in bursar("scores.csv", "--budget", "1e999999999")[2]


def test_limits_are_respected(bursar, select_json):
    everything = ["scores.csv", "--budget", "1000", "--mode", "disjoint"]

    def labels(*options):
        rows = list(csv.DictReader(io.StringIO(bursar(*everything, *options)[1])))
        return rows, [task for row in rows for task in row["tasks"].split(";")]

    assert labels()[1].count("slots") == 5
    assert labels("--at-most", "slots=2", "--at-most", "intent=4")[1].count("slots") == 2
    assert sorted(row["id"] for row in labels("--per-group", "1")[0]) == ["007", "u2", "u4"]
    assert select_json(*everything, "--hours", "ana=1")["objective"] == pytest.approx(
        0.09 + 0.65 + 0.6 + 0.25 + 0.45 + 0.95
    )
    cheap = ["scores.csv", "--budget", "10", "--mode", "disjoint"]
    assert select_json(*cheap, "--at-least", "slots=3")["objective"] < select_json(*cheap)["objective"]


def test_a_table_without_items_buys_nothing(select_json, bursar, tmp_path):
    (tmp_path / "empty.csv").write_text("id,confidence:a\n")
    nothing = {"cost": 0, "items": 0}
    assert select_json("empty.csv", "--budget", "5") == {"objective": 0, "bound": 0, "optimal": True} | nothing
    assert select_json("empty.csv", "--budget", "5", "--combine", "ind")["objective"] is None
    assert bursar("empty.csv", "--budget", "5")[1] == "id,tasks,cost\n"
    assert bursar("empty.csv", "--budget", "5", "--out", "chosen.parquet")[0] == 0
    assert pq.read_table(tmp_path / "chosen.parquet").column_names == ["id", "tasks", "cost"]


def test_the_order_of_the_file_changes_nothing(bursar, tmp_path):
    head, *rows = SCORES.splitlines(keepends=True)
    (tmp_path / "other.csv").write_text(head + "".join(reversed(rows)))
    for options in (["--mode", "disjoint"], ["--combine", "par"], ["--combine", "rrf", "--spend", "ratio"]):
        assert bursar("scores.csv", "-b", "20", *options)[:2] == bursar("other.csv", "-b", "20", *options)[:2]


def test_parquet_goes_in_and_out(select_json, tmp_path):
    table = pyarrow.csv.read_csv(io.BytesIO(SCORES.encode()), convert_options=None)
    pq.write_table(table, tmp_path / "scores.parquet")
    options = ["--budget", "20", "--mode", "disjoint"]
    assert select_json("scores.parquet", *options, "--out", "chosen.parquet") == select_json("scores.csv", *options)
    assert pq.read_table(tmp_path / "chosen.parquet").to_pydict()["cost"] == [6.5, 6.0, 4.5]


# -- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("none.csv -b 1", "none.csv: there is no such file"),
        ("scores.csv", "--budget"),
        ("scores.csv -b -1", "--budget: '-1'"),
        ("scores.csv -b much", "--budget: 'much'"),
        ("scores.csv -b nan", "--budget: 'nan'"),
        ("scores.csv -b 1.5 --items", "--budget: '1.5' is not a valid number. Fix: use a whole number"),
        ("--mode jiont", "use joint, disjoint, equal or single:TASK"),
        ("--mode single", "use joint, disjoint, equal or single:TASK"),
        ("--mode joint:slots", "use joint, disjoint, equal or single:TASK"),
        ("--mode single:slot", "unknown task 'slot'. Fix: the tasks are intent, slots"),
        ("--combine mean", "--combine mean"),
        ("--spend all", "--spend all"),
        ("--mode disjoint --combine avg", "--combine has no effect in --mode disjoint"),
        ("--mode single:slots --combine avg", "--combine has no effect"),
        ("--mode equal --weights slots=1", "--weights has no effect in --mode equal"),
        ("--combine par --spend exact", "MT-PAR has no scores"),
        ("--combine ind --spend ratio", "MT-IND has no scores"),
        ("--combine max --weights slots=1", "have no effect with --combine max"),
        ("--weights slot=1", "--weights: unknown task 'slot'"),
        ("--weights slots=-1", "--weights slots: '-1'"),
        ("--weights slots", "write NAME=NUMBER"),
        ("--weights slots=0", "at least one above 0"),
        ("--at-most slot=1", "--at-most: unknown task 'slot'"),
        ("--at-least slots=1.5", "use a whole number"),
        ("--at-most slots=1 --at-most slots=2", "--at-most is given twice for 'slots'"),
        ("--at-most slots=1 --at-least slots=2", "cannot both hold"),
        ("--at-least slots=2", "no selection within the budget keeps to labels of slots"),
        ("--at-least slots=2 --spend greedy", "greedy spending reached 0"),
        ("--mode equal --at-most slots=2", "equal shares cannot keep to limits"),
        ("--combine par --per-group 2", "MT-PAR has no scores, so it does not support limits"),
        ("--hours bob=2", "no column has the hours of 'bob'. Fix: use ana"),
        ("bare.csv -b 1 --hours bob=2", "add a column hours:ANNOTATOR:TASK"),
        ("bare.csv -b 1 --per-group 2", "there is no column 'group'"),
        ("bare.csv -b 1 --at-least a=1", "an empty pool"),
        ("--per-group 0", "per-group"),
        ("--out chosen.xlsx", "neither .csv nor .parquet"),
        ("--out none/chosen.csv", "there is no folder none"),
        ("bad.csv -b 1 --out chosen.csv", "bad.csv:2: item 'x': column 'confidence:a' holds '7'"),
    ],
)
def test_invalid_input_exits_with_2_and_writes_nothing(bursar, tmp_path, command, said):
    (tmp_path / "bare.csv").write_text("id,confidence:a\n")
    (tmp_path / "bad.csv").write_text("id,confidence:a\nx,7\n")
    before = sorted(tmp_path.iterdir())
    given = command.split() if ".csv" in command.split()[0] else ["scores.csv", "-b", "1", *command.split()]
    code, out, err = bursar(*given)
    assert code == 2
    assert said in " ".join(err.split())
    assert out == ""
    assert "Traceback" not in err
    assert sorted(tmp_path.iterdir()) == before


def test_an_old_file_stays_as_it_was_if_the_selection_fails(bursar, tmp_path):
    (tmp_path / "chosen.csv").write_text("yesterday's")
    assert bursar("scores.csv", "-b", "1", "--at-least", "slots=2", "--out", "chosen.csv")[0] == 2
    assert (tmp_path / "chosen.csv").read_text() == "yesterday's"


def test_help_tells_the_columns_and_has_an_example(bursar):
    code, out, _ = bursar("--help")
    assert code == 0
    assert "confidence:TASK" in out
    assert "bursar select scores.csv --budget 20000" in out


# -- as a program ----------------------------------------------------------------------------------------------------
def test_it_runs_as_a_program_without_torch(tmp_path):
    (tmp_path / "scores.csv").write_text(SCORES)
    code = (
        "import sys\nfrom bursar.cli import main\n"
        "sys.argv = ['bursar', 'select', 'scores.csv', '--budget', '20', '--out', 'chosen.csv', '--json']\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "assert not {'torch', 'transformers', 'sklearn'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["items"] == 3
    assert (tmp_path / "chosen.csv").read_text().startswith("id,tasks,cost\nu2,intent;slots,6.5\n")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_two_hundred_thousand_items_take_seconds(select_json, tmp_path, suffix):
    rng, items = np.random.default_rng(0), 200_000
    columns = {"id": pa.array([f"u{n}" for n in rng.permutation(items)])}
    for task in "abc":
        columns[f"confidence:{task}"] = rng.random(items)
        columns[f"cost:{task}"] = np.round(rng.integers(1, 40, items) * 0.25, 2)
    columns["cost:reading"] = rng.integers(1, 30, items)
    if suffix == "csv":
        pyarrow.csv.write_csv(pa.table(columns), tmp_path / "many.csv")
    else:
        pq.write_table(pa.table(columns), tmp_path / "many.parquet")
    started = time.process_time()  # of this process alone: others may be at work beside it
    found = select_json(f"many.{suffix}", "--budget", "500000.5", "--mode", "disjoint", "--out", f"chosen.{suffix}")
    assert time.process_time() - started < 10
    assert found["optimal"]
    assert 499_999 < found["cost"] <= 500_000.5


@pytest.mark.parametrize("budget", ["0", "0.0"])
def test_a_budget_of_nothing_is_refused(bursar, budget):
    code, _, err = bursar("scores.csv", "--budget", budget)
    assert (code, f"--budget {budget} buys nothing" in err) == (2, True)
