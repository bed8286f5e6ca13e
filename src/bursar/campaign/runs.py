"""A run: a campaign in a folder, the strategies that it is compared with, and their result."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bursar.campaign.audit import audit_scores, audit_slices
from bursar.campaign.campaign import Campaign
from bursar.campaign.checks import check_arms
from bursar.campaign.config import CONFIG_FILE, CampaignConfig, parse_config
from bursar.campaign.curves import mean_scores
from bursar.campaign.decisions import CampaignBegun, ConfidenceSummary, RoundRecord, RoundSelection, SplitDecision
from bursar.campaign.folder import Lock, has_ledger, open_ledger
from bursar.campaign.participants import ORACLE, GoldAnnotator, Observer, ReviewCallback, reviewer
from bursar.campaign.results import ArmResult, CorpusSummary, RunResult, TaskSummary
from bursar.campaign.savings import saved_against_random, savings_of
from bursar.campaign.sections import BUILTIN
from bursar.campaign.setting_changes import leaves_of
from bursar.campaign.splits import DataSplits, load_parts
from bursar.campaign.stopping import advice_by_round, forecast, known_rounds
from bursar.compute import THIS_PROCESS, Engine, ProgressCallback, run_all
from bursar.errors import ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.ledger import Ledger

CHANGE_NO_RESULT = {("name",), ("compare",), ("stopping",), ("oracle",), ("ledger",), ("learner", "log_steps")}
ANEW = "choose another --run folder, or start anew with --fresh"


class Run:
    """A folder with the ledgers and models of a campaign and of the strategies that it is compared with.

    ``trust`` allows loading models that could run code.

    >>> import tempfile
    >>> run = Run(Path(tempfile.mkdtemp()), parse_config({"tasks": ["intent"], "corpus": {"items": 200}}))
    >>> run.arms, len(run.parts.test) > 0
    (['AUTO'], True)
    """

    def __init__(
        self, folder: Path, config: CampaignConfig, parts: DataSplits | None = None, *, trust: bool = False
    ) -> None:
        self.folder = folder
        self.config = config
        self.parts = parts or load_parts(config)
        self.trust = trust

    @classmethod
    def open(cls, folder: Path, *, trust: bool = False) -> Run:
        """Open a run that was started before."""
        try:
            stored = json.loads((folder / CONFIG_FILE).read_text())
        except FileNotFoundError:
            raise ConfigError(f"{folder} holds no run", fix="start one with: bursar run CAMPAIGN.toml") from None
        except (OSError, ValueError) as wrong:
            raise ConfigError(f"{folder / CONFIG_FILE} cannot be read: {wrong}") from None
        if not isinstance(stored, dict) or not isinstance(stored.get("campaign"), dict) or "corpus" not in stored:
            raise ConfigError(f"{folder / CONFIG_FILE} is damaged: it says nothing of a campaign and its corpus")
        corpus = stored["campaign"].get("corpus", {})
        for part in ("dev", "test"):  # a default split may be missing
            if corpus.get(part) == part:
                del corpus[part]
        config = parse_config(stored["campaign"], str(folder / CONFIG_FILE))
        source = folder / config.corpus.source
        if config.corpus.source != BUILTIN and source.exists():  # projects hold their own data
            corpus_here = config.corpus.model_copy(update={"source": str(source)})
            parts = load_parts(config.model_copy(update={"corpus": corpus_here}))
        else:
            parts = load_parts(config)
        run = cls(folder, config, parts, trust=trust)
        run._check_corpus(stored["corpus"])
        return run

    @property
    def arms(self) -> list[str]:
        """The campaign's strategy, then those that it is compared with."""
        others = [self.config.arm(name).strategy.name for name in self.config.compare]
        return list(dict.fromkeys([self.config.arm(self.config.strategy.name).strategy.name, *others]))

    def campaign(self, arm: str, watcher: Observer | None = None, engine: Engine = THIS_PROCESS) -> Campaign:
        config, folder = self.config_of(arm), self.folder_of(arm)
        return Campaign(config, folder, parts=self.parts, watcher=watcher, trust=self.trust, engine=engine)

    def open_ledger(self, arm: str) -> Ledger:
        return open_ledger(self.config_of(arm), self.folder_of(arm), self.parts.corpus)

    def has_ledger(self, arm: str) -> bool:
        return has_ledger(self.config_of(arm), self.folder_of(arm))

    def config_of(self, arm: str) -> CampaignConfig:
        return self.config if arm == self.arms[0] else self.config.arm(arm)

    def folder_of(self, arm: str) -> Path:
        """The run's own folder for its strategy, subfolders for the others."""
        return self.folder if arm == self.arms[0] else self.folder / "compare" / arm

    # -- starting and continuing -------------------------------------------------------------------------------------
    @contextmanager
    def locked(self) -> Iterator[None]:
        """Allow one process at a time."""
        lock = Lock(self.folder / "run.lock", patience=0.5)
        try:
            yield
        finally:
            lock.release()

    def pin(self) -> None:
        """Write the settings into the folder, or refuse to continue a run that was started with others."""
        path = self.folder / CONFIG_FILE
        versions = {name: version(name) for name in ("bursar", "torch", "numpy")}
        mine: dict[str, Any] = {
            "campaign": self.config.model_dump(mode="json"),
            "digest": self.config.digest,
            "corpus": self.parts.fingerprint,
            "versions": versions | {"python": platform.python_version()},
        }
        stored = json.loads(path.read_text()) if path.exists() else None
        if stored is not None and stored["campaign"].get("ledger") != mine["campaign"].get("ledger"):
            message = f"{self.folder} was started with its ledger in another place"
            raise ConfigError(message, fix="use the same ledger.url, or choose another --run folder")
        with closing(self.open_ledger(self.arms[0])) as ledger:
            begun = ledger.decision(CampaignBegun, 0)  # None if the campaign was refused before it
        if stored is None or begun is None:
            if begun not in (None, CampaignBegun(round=0, settings=mine["digest"], corpus=mine["corpus"])):
                message = f"the ledger of {self.folder} was started with other settings or on another corpus"
                fix = "choose another --run folder, and another schema in ledger.url if there is one"
                raise ConfigError(message, fix=fix)
            self._write_down(mine)
            return
        self._check_corpus(stored["corpus"])
        if stored["digest"] != mine["digest"]:
            changed = ", ".join(differences(stored["campaign"], mine["campaign"])) or "a default"
            raise ConfigError(f"{self.folder} was started with other settings: {changed}", fix=ANEW)
        if stored["campaign"] != mine["campaign"]:  # another name, comparison or advice, which change no result
            self._write_down(stored | {"campaign": mine["campaign"]})

    def _write_down(self, about: dict[str, Any]) -> None:
        draft = self.folder / f"{CONFIG_FILE}.draft"
        draft.write_text(json.dumps(about, indent=1))
        draft.replace(self.folder / CONFIG_FILE)

    def _check_corpus(self, fingerprint: str) -> None:
        if fingerprint != self.parts.fingerprint:
            message = f"{self.folder} was started on another corpus than {self.config.corpus.source} now holds"
            raise ConfigError(message, fix=ANEW)

    # -- the result --------------------------------------------------------------------------------------------------
    def result(self) -> RunResult:
        arms = {arm: self._arm_result(arm) for arm in self.arms if arm == self.arms[0] or self.has_ledger(arm)}
        schema, parts = self.parts.corpus.schema, self.parts
        found = RunResult(
            name=self.config.name,
            config=self.config,
            versions=json.loads((self.folder / CONFIG_FILE).read_text()).get("versions", {}),
            strategy=self.arms[0],
            tasks={n: TaskSummary(kind=t.kind, metric=t.metric, labels=len(t.labels)) for n, t in schema.items()},
            corpus=CorpusSummary(
                source=self.config.corpus.source, pool=len(parts.pool), dev=len(parts.dev), test=len(parts.test)
            ),
            arms=arms,
            oracle=reviewer().answer(self),
        )
        more = {"comparison": mean_scores(found, self.arms), "saved": saved_against_random(found)}
        return found.model_copy(update=more)

    def _arm_result(self, arm: str) -> ArmResult:
        with closing(self.campaign(arm)) as campaign:
            ledger, tasks, state = campaign.ledger, campaign.corpus.schema, campaign.state
            audit = audit_scores(audit_slices(ledger, tasks), tasks)
            rounds = ledger.decisions(RoundRecord)
            known, stopping, budget = known_rounds(rounds, audit), campaign.config.stopping, state.settings().budget
            money = campaign.terms.costs.units(budget.per_round) if budget.counts == "money" else None
            return ArmResult(
                rounds=tuple(rounds),
                spending=tuple(ledger.spending()),
                spent=ledger.spent(),
                selections=tuple(ledger.decisions(RoundSelection)),
                splits=tuple(ledger.decisions(SplitDecision)),
                confidence=tuple(ledger.decisions(ConfidenceSummary)),
                audit=tuple(audit),
                savings=savings_of(ledger, tasks, len(campaign.parts.test)),
                stopping=tuple(advice_by_round(known, next_money=money, settings=stopping)),
                forecast=forecast(known, next_money=money, settings=stopping),
                setting_changes=tuple(state.setting_changes()),
                strategies=tuple(state.strategies()),
                skips=len(ledger.skips()),
                ended=campaign.state.ended,
            )


def run_campaign(
    run: Run,
    watch: Callable[[str], Observer | None] = lambda arm: None,
    workers: int = 1,
    *,
    engine: Engine = THIS_PROCESS,
    progress: Progress = no_progress,
    callback: ReviewCallback | None = None,
) -> RunResult:
    """Start or continue every arm of a simulated campaign, ``workers`` at a time, and return the result.

    With an ``engine``, its workers score the pool and arms run one after the other; enter it first to keep its workers
    for the whole run. If the campaign has an oracle section, the search for the best order follows, reported to
    ``progress`` and ``callback``; if there is nothing to compare, the result says why.

    >>> import tempfile
    >>> small = {"corpus": {"items": 200}, "learner": {"name": "scikit"}, "strategy": {"name": "MT-AVG"}}
    >>> budget = {"seed_items": 20, "per_round": 100.0, "rounds": 1}
    >>> config = parse_config({"tasks": ["intent"], "audit": {"share": 0.0}, "budget": budget} | small)
    >>> run = Run(Path(tempfile.mkdtemp()), config)
    >>> len(run_campaign(run).main.rounds)
    2
    """
    check_arms(run.config, run.parts.corpus)
    if run.config.oracle is not None:
        reviewer().check(run)
    with run.locked():
        run.pin()
        watchers = {arm: watch(arm) or Observer() for arm in run.arms}

        def forward(event: tuple[str, str, tuple[Any, ...]]) -> None:
            arm, what, arguments = event
            getattr(watchers[arm], what)(*arguments)

        workers = workers if engine is THIS_PROCESS else 1
        # Another process opens the run for itself.
        opened = partial(Run.open, run.folder, trust=run.trust) if workers > 1 else lambda: run
        run_all([partial(_run_arm, opened, arm, engine) for arm in run.arms], workers, forward)
    if run.config.oracle is None:
        return run.result()
    try:
        reviewer().review(run, progress, callback)
    except ConfigError as wrong:
        return run.result().model_copy(update={ORACLE: {"refused": str(wrong)}})
    return run.result()


def _run_arm(opened: Callable[[], Run], name: str, engine: Engine, callback: ProgressCallback) -> None:
    run = opened()
    with closing(run.campaign(name, _ArmObserver(name, callback), engine)) as campaign:
        campaign.run(GoldAnnotator(run.parts.corpus))


@dataclass
class _ArmObserver(Observer):
    """A watcher that forwards events with the name of the arm."""

    arm: str
    callback: ProgressCallback

    def stage(self, round: int, what: str, done: float) -> None:
        self.callback((self.arm, "stage", (round, what, done)))

    def scored(self, record: RoundRecord) -> None:
        self.callback((self.arm, "scored", (record,)))


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The changed settings that results depend on."""
    a, b = leaves_of(old), leaves_of(new)
    changed = [key for key in sorted({*a, *b}) if a.get(key) != b.get(key) and not {key[:1], key} & CHANGE_NO_RESULT]
    return [f"{'.'.join(key)} was {a.get(key)!r}, now {b.get(key)!r}" for key in changed]
