"""One campaign of a simulation: a strategy and a seed, as a unit of work that another process can run."""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bursar.campaign.campaign import Campaign
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.decisions import RoundRecord
from bursar.campaign.participants import GoldAnnotator, Observer
from bursar.campaign.splits import fully_labelled, load_parts
from bursar.compute import ProgressCallback, Unit
from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.learners import Learner, make_learner
from bursar.learners.chosen import ChosenLearner, choose_learner
from bursar.random_streams import rng
from bursar.selection import Strategy
from bursar.selection.strategy import Choose, name_of_strategy

VERSION = 1  # of what a cell computes: stored results of another version are not used
POOL, DEV, TEST = "train", "dev", "test"
SPLITS = (POOL, DEV, TEST)


@dataclass
class Material:
    """What all cells of a simulation share, and what settings cannot hold: the corpus, the model, own strategies."""

    corpus: Corpus
    learner: Any
    strategies: tuple[str | Strategy | Choose, ...]
    _made: dict[str, Learner] = field(default_factory=dict)

    @property
    def chosen(self) -> ChosenLearner:
        return choose_learner(self.learner, self.corpus.schema, self.corpus.images is not None)

    def made(self, config: CampaignConfig) -> Learner | None:
        """The learner for the cells of one process, which remembers vectors; ``None``: a campaign makes its own."""
        if config.strategy.make().alone:
            return None
        key = json.dumps(config.learner.decisive, sort_keys=True)
        if key not in self._made:
            options = config.learner.options
            found = self.chosen.make(self.corpus.schema) or make_learner(
                config.learner.name, self.corpus.schema, options
            )
            if hasattr(found, "expect"):
                found.expect(self.corpus)
            self._made = {key: found}
        return self._made[key]


_LOADED: dict[str, Material] = {}  # of this process, by name: of one simulation


@dataclass(frozen=True)
class Parcel:
    """Material on its way to a process: packed, or only named if it stays here."""

    name: str
    packed: bytes | None = None

    @classmethod
    def of(cls, material: Material, elsewhere: bool) -> Parcel:
        """Pack the material if it goes elsewhere; what ``__main__`` defines is packed as a whole."""
        name = f"{id(material):x}"
        _LOADED.clear()
        _LOADED[name] = material
        if not elsewhere:
            return cls(name)
        import cloudpickle

        try:
            packed = cloudpickle.dumps((material.corpus, material.learner, material.strategies))
        except Exception as wrong:  # pickling may raise anything
            raise ConfigError(
                f"the learner or a strategy cannot be sent to another process: {wrong}", fix="use workers=1"
            ) from wrong
        return cls(hashlib.blake2b(packed, digest_size=12).hexdigest(), packed)

    def open(self) -> Material:
        """The material, unpacked once in a process."""
        if self.name not in _LOADED:
            import cloudpickle

            assert self.packed is not None
            corpus, learner, strategies = cloudpickle.loads(self.packed)
            for strategy in strategies:
                name_of_strategy(strategy)  # registers those of one's own
            _LOADED.clear()
            _LOADED[self.name] = Material(corpus, learner, strategies)
        return _LOADED[self.name]


def forget() -> None:
    """Forget the material of this process."""
    _LOADED.clear()


# -- splits ------------------------------------------------------------------------------------------------------------
def split(corpus: Corpus, test: float, seed: int) -> Corpus:
    """The corpus in pool, dev and test: its own test split, or a random part of the labelled items drawn by seed.

    ``test`` is their share, or their number if it is 1 or more. Items without a label for every task are left out.
    """
    whole = fully_labelled(corpus, np.arange(len(corpus)))
    corpus = corpus.take(whole)
    names = np.array([corpus.splits[code] for code in corpus.split_codes], dtype=object)
    parts = np.where(np.isin(names, [DEV, TEST]), names, POOL)
    if not (parts == TEST).any():
        pool = np.flatnonzero(parts == POOL)
        count = round(test * len(pool)) if test < 1 else int(test)
        parts[rng(seed, "simulated test items").permutation(corpus.by_id(pool))[:count]] = TEST
    counts = {name: int((parts == name).sum()) for name in SPLITS}
    if counts[POOL] < 4 or not counts[TEST]:
        raise ConfigError(
            f"{len(whole):,} of the items are labelled for all tasks: {counts[POOL]} to choose from and {counts[TEST]} "
            "to test on are too few for a simulation",
            fix="give more labelled items, fewer tasks=[…], or another test=",
        )
    codes = np.array([SPLITS.index(name) for name in parts.tolist()], dtype=np.int16)
    return replace(corpus, splits=SPLITS, split_codes=codes)


# -- work --------------------------------------------------------------------------------------------------------------
def run_cell(unit: Unit, report: ProgressCallback, *, place: Path | None) -> dict[str, Any]:
    """Run one campaign, or continue it, and return its curve. ``place`` is where unfinished campaigns are kept."""
    material = unit["material"].open()
    config = parse_config(dict(unit["campaign"]), "simulate")
    corpus = split(material.corpus, unit["test"], config.seed)
    parts = load_parts(config, corpus)
    with _folder(unit, place) as folder:
        campaign = Campaign(
            config, folder, parts=parts, watcher=_Reporter(report), learner=material.made(config), trust=True
        )
        with closing(campaign):
            campaign.run(GoldAnnotator(corpus))
            return _curve(campaign)


@contextmanager
def _folder(unit: Unit, place: Path | None) -> Iterator[Path]:
    """A folder for one campaign, removed when it is finished; with a place, an unfinished one is found again."""
    if place is None:
        with tempfile.TemporaryDirectory(prefix="bursar-") as name:
            yield Path(name)
        return
    about = {key: value for key, value in unit.items() if key != "material"}
    folder = place / hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=12).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    grave = folder.with_name(f".{folder.name}.removed")  # in one step: half a folder would look like a lost ledger
    shutil.rmtree(grave, ignore_errors=True)
    folder.rename(grave)
    shutil.rmtree(grave, ignore_errors=True)


@dataclass
class _Reporter(Observer):
    """Passes on how far a campaign is."""

    report: ProgressCallback
    last: tuple[int, str] = (-1, "")

    def stage(self, round: int, what: str, done: float) -> None:
        if (round, what) != self.last:
            self.last = (round, what)
            self.report([round, what])


def _curve(campaign: Campaign) -> dict[str, Any]:
    """By round: the money spent, the items labelled, and the main score of each task."""
    schema, unit = campaign.corpus.schema, float(campaign.terms.costs.unit)
    rounds = [
        {
            "round": record.round,
            "spent": round(record.spent * unit, 6),
            "items": record.items,
            "scores": {name: record.test[name][task.metric] for name, task in schema.items()},
        }
        for record in campaign.ledger.decisions(RoundRecord)
    ]
    return {"rounds": rounds, "ended": campaign.state.ended}


def source_of(given: Any) -> str | None:
    """A digest of the code of a function or of a strategy's, so that results of an older one are not used."""
    function = given.choose or given.value if isinstance(given, Strategy) else given
    if not callable(function) or isinstance(function, type):
        return None
    code = getattr(function, "__code__", None)
    try:
        text = inspect.getsource(function)
    except Exception:  # the file may be gone, or hold other text by now
        text = "" if code is None else f"{code.co_code.hex()} {code.co_consts!r}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest() if text else None


def unit_of(config: CampaignConfig, corpus: str, test: float, own: Mapping[str, Any]) -> dict[str, Any]:
    """A cell as plain values, which its result is filed under."""
    table = config.model_dump(mode="json", exclude_unset=True)
    return {"version": VERSION, "corpus": corpus, "test": test, "campaign": table, "own": dict(own)}
