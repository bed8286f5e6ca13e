"""From a setting to a row of observations: the tasks that are drawn, the labels that are missing, and CoNLL's F1."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import ConfigError, SchemaError
from bursar.laws.observations import Observations
from bursar.simulation import assistant_corpus
from experiments.related import unit_codes
from experiments.studies.laws_trainings import Material, Setting, drawn_tasks, network_of, targets_of, trained


@pytest.fixture(scope="module")
def material():
    return Material.of(assistant_corpus(400), "slots", held_out="dev", size=12, name="builtin")


SETTINGS = [
    Setting(300),
    Setting(300, tasks=3, alpha=0.9),
    Setting(500, tasks=3, alpha=0.5, seed=1),
    Setting(200, tasks=3, alpha=1.0, n_other=600),
    Setting(200, tasks=2, alpha=0.9, architecture="mixed"),
]


def test_a_row_depends_on_its_setting_alone(material):
    together = trained(material, SETTINGS, epochs=3)
    for setting, row in zip(SETTINGS, together, strict=True):
        assert trained(material, [setting], epochs=3, lanes=1) == [row]
    assert trained(material, SETTINGS[::-1], epochs=3, lanes=2) == together[::-1]


def test_rows_are_observations_and_say_what_was_trained_on(material):
    rows = trained(material, SETTINGS, epochs=1)
    assert len(Observations.of(rows)) == len(SETTINGS)
    assert [(row["n"], row["n_other"]) for row in rows] == [(300, 0), (300, 300), (500, 500), (200, 600), (200, 200)]
    assert rows[0]["ami"] is None
    assert rows[3]["ami"] == 1.0
    assert rows[2]["ami"] < rows[1]["ami"] < 1


def test_a_task_with_fewer_tokens_has_no_labels_on_the_others(material):
    related = drawn_tasks(material, SETTINGS[3])
    targets = targets_of(related)
    assert (targets >= 0).sum(axis=0).tolist() == [200, 600, 600]
    both = (targets >= 0).all(axis=1)
    np.testing.assert_array_equal(targets[both, 0], targets[both, 1])  # α = 1: the same labels under other names


def test_seeds_draw_other_sentences_and_more_tokens_keep_those_of_fewer(material):
    def items(**setting):
        return set(drawn_tasks(material, Setting(**setting)).corpus.ids.tolist())

    few, more = items(n=200), items(n=200, tasks=2, alpha=0.8, n_other=500)
    assert few < more
    assert few != items(n=200, seed=1)


def test_words_stand_between_their_neighbours_and_held_out_ones_have_no_targets(material):
    network, (job,) = network_of(material, SETTINGS[:1], [drawn_tasks(material, SETTINGS[0])])
    words = int(material.held_out.words.sum())
    assert len(job.rows) == 300
    assert len(network.targets) == 300 + words
    assert (network.targets[300:] == -1).all()
    first = int(material.held_out.words[0])
    window = network.windows[300 : 300 + first]
    assert window[0, 0] == window[-1, 2] == 0
    np.testing.assert_array_equal(window[1:, 0], window[:-1, 1])
    np.testing.assert_array_equal(window[:-1, 2], window[1:, 1])


def test_the_score_is_the_f1_of_whole_spans(material):
    gold = unit_codes(material.held_out, material.task)
    touching = material.task.targets(material.held_out.labels["slots"].rows, material.held_out.words)
    merged = ((touching[1:] % 2 == 1) & (touching[:-1] > 0) & (gold[1:] == gold[:-1])).sum()  # IO cannot part them
    assert material.f1(gold) == 1.0 if not merged else 0.9 < material.f1(gold) < 1
    assert material.f1(np.zeros_like(gold)) == 0.0
    one = gold.copy()
    one[np.flatnonzero(gold)[0]] = 0
    assert material.f1(one) < material.f1(gold)


def test_training_longer_learns_more(material):
    setting = Setting(2000, tasks=2, alpha=0.97)
    (short,), (long,) = (trained(material, [setting], epochs=epochs) for epochs in (1, 15))
    assert long["score"] > short["score"] + 0.2
    assert short["settings"] != long["settings"]


@pytest.mark.parametrize(
    ("setting", "what"),
    [({"tasks": 2}, "alpha = None with 2 tasks"), ({"alpha": 0.5}, "with 1 tasks"), ({"n_other": 5}, "single task")],
)
def test_settings_that_do_not_fit_are_refused(setting, what):
    with pytest.raises(ConfigError, match=what):
        Setting(100, **setting)


def test_a_task_without_spans_is_refused():
    with pytest.raises(SchemaError, match="no task of spans"):
        Material.of(assistant_corpus(50), "intent")
