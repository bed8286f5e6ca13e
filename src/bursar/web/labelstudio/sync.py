"""A live campaign and its project at Label Studio, kept in step: push what is asked, pull what people say.

Everything may be stopped anywhere and run again. A task is imported if the project has none of its item and round. An
annotation goes to the ledger under a key of its own, so it is bought once however often it is pulled. The file
``label-studio.json`` in the run's folder remembers what was taken, so that a change or a removal is seen for one.

- The first answer of an item is the one that is bought. Somebody else's is recorded beside it: do people agree?
- Whoever changes an annotation later corrects it: a new entry that costs nothing.
- What is deleted at Label Studio stays in the ledger; it was said, and paid for.
- Whoever skips an item declines it: nobody is asked about it again, and its money is free.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bursar.annotation.session import AnnotationSession, Answer
from bursar.campaign.state import ItemRequest
from bursar.corpus.formats.format import replacing
from bursar.errors import BursarError, ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.ledger.records import ANSWER, OVERLAP
from bursar.web.labelstudio.tasks import Said, annotations_in, config_for, key_of, task_of

FILE = "label-studio.json"
VERSION = 1
BATCH = 50  # tasks that are imported at once
SKIP = "skip"


class Server(Protocol):
    """What is needed of a server: see ``client.Studio``."""

    url: str

    def people(self) -> dict[int, str]: ...
    def find_project(self, mark: str, known: int | None = None) -> int | None: ...
    def create_project(self, title: str, description: str, config: str) -> int: ...
    def pages(self, project: int) -> Iterator[list[dict[str, Any]]]: ...
    def import_tasks(self, project: int, tasks: Sequence[Mapping[str, Any]]) -> int: ...


# -- what is remembered ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PulledAnnotation:
    """An annotation as it was taken: the item that it is about, what it said, and what became of it."""

    item: str
    round: int
    labels: Mapping[str, Any]
    role: str  # answer, overlap or skip
    gone: bool = False  # deleted at Label Studio


@dataclass
class SyncState:
    """What a run's folder knows of its project."""

    url: str
    mark: str  # in the project's description and configuration, by which it is found again
    project: int | None = None
    taken: dict[int, PulledAnnotation] = field(default_factory=dict)  # by annotation

    @classmethod
    def load(cls, folder: Path) -> SyncState | None:
        """As it was written; nothing where nothing was."""
        path = folder / FILE
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            if stored["version"] != VERSION:
                raise ConfigError(f"{path} is of version {stored['version']!r}", fix=f"this Bursar knows {VERSION}")
            taken = {int(annotation): PulledAnnotation(**about) for annotation, about in stored["taken"].items()}
            return cls(stored["url"], stored["mark"], stored["project"], taken)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{path} cannot be read: {type(error).__name__} {error}",
                fix="remove it: the next push finds or makes the project, and nothing is bought twice",
            ) from None

    def save(self, folder: Path) -> None:
        """Write it whole or not at all."""
        about = {"version": VERSION, "url": self.url, "mark": self.mark, "project": self.project}
        about["taken"] = {str(annotation): asdict(taken) for annotation, taken in self.taken.items()}
        with replacing(folder / FILE) as file:
            json.dump(about, file, ensure_ascii=False, indent=1)


@dataclass(frozen=True)
class Pushed:
    """What became of a push."""

    project: int
    new: int  # tasks that were imported
    there: int  # that were there already
    suggested: int  # of the new ones, with a model's suggestions


@dataclass
class Pulled:
    """What became of a pull: items by what was done about them, and what could not be used."""

    answered: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)  # somebody else's answer to what was answered
    corrected: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    cost: int = 0  # in whole units of money

    @property
    def anything(self) -> bool:
        """Whether there was anything new."""
        return any((self.answered, self.beside, self.corrected, self.skipped, self.deleted, self.problems))


# -- both ways ---------------------------------------------------------------------------------------------------------
class Sync:
    """A live campaign beside a server."""

    def __init__(self, session: AnnotationSession, server: Server) -> None:
        self.session = session
        self.server = server
        self.sync_state = SyncState.load(session.folder)
        if session.config.costs.pricing != "predicted":
            raise ConfigError(
                f"{session.folder} is a simulation: its prices are read off gold labels (costs.pricing = 'gold')",
                fix='use costs.pricing = "predicted" for a campaign that people annotate',
            )

    def push(self, progress: Progress = no_progress) -> Pushed:
        """Import what is asked and not there yet, with suggestions."""
        config = config_for(self.session.corpus)  # what cannot be asked there is refused before anything is made
        project = self._project_for_push(config)
        there = {key for tasks in self.server.pages(project) for task in tasks if (key := key_of(task))}
        wanted = self.session.wanted()
        new = [want for want in wanted if (want.round, want.id) not in there]
        tasks = [task_of(self.session.corpus, want, self._suggestions(want)) for want in new]
        for start in range(0, len(tasks), BATCH):
            progress("importing", start / len(tasks))
            self.server.import_tasks(project, tasks[start : start + BATCH])
        progress("importing", 1.0)
        return Pushed(project, len(new), len(wanted) - len(new), sum("predictions" in task for task in tasks))

    def _suggestions(self, want: ItemRequest) -> dict[str, Any]:
        found = self.session.suggestions(want.id)
        return {task: about for task, about in found.items() if task in self.session.corpus.schema}

    def _project_for_push(self, config: str) -> int:
        """The run's project: the one it has, or a new one, marked before it is made so that there is only ever one."""
        if self.sync_state is None:
            self.sync_state = SyncState(self.server.url, f"bursar run {secrets.token_hex(8)}")
            self.sync_state.save(self.session.folder)
        found = self.server.find_project(self.sync_state.mark, self.sync_state.project)
        if found is None:
            if self.sync_state.project is not None or self.sync_state.taken:  # it is gone, or this is another server
                self.sync_state = SyncState(self.server.url, f"bursar run {secrets.token_hex(8)}")
                self.sync_state.save(self.session.folder)
            about = f"Made by Bursar: please keep this line. {self.sync_state.mark}"
            marked = config.replace("<View", f'<View run="{self.sync_state.mark}"', 1)
            found = self.server.create_project(self.session.config.name, about, marked)
        self.sync_state.project, self.sync_state.url = found, self.server.url
        self.sync_state.save(self.session.folder)
        return found

    def project(self) -> int:
        """The number of the run's project, which is there after the first push."""
        sync_state = self.sync_state
        found = None if sync_state is None else self.server.find_project(sync_state.mark, sync_state.project)
        if found is None:
            raise ConfigError(
                f"{self.session.folder} has no project at {self.server.url}",
                fix="push it first: bursar label-studio push",
            )
        return found

    def pull(self, progress: Progress = no_progress) -> Pulled:
        """Take in what people have said since the last time."""
        project, sync_state = self.project(), self.sync_state
        assert sync_state is not None  # or there is no project
        people, pulled = self.server.people(), Pulled()
        seen: set[int] = set()
        for tasks in self.server.pages(project):
            for task in tasks:
                for said in annotations_in(self.session.corpus, task):
                    seen.add(said.annotation)
                    self._take(sync_state, said, people.get(said.person, f"user {said.person}"), pulled)
            sync_state.save(self.session.folder)
        for annotation, taken in sync_state.taken.items():
            if taken.gone != (annotation not in seen):
                sync_state.taken[annotation] = PulledAnnotation(**asdict(taken) | {"gone": annotation not in seen})
                pulled.deleted += [taken.item] if annotation not in seen else []
        sync_state.save(self.session.folder)
        return pulled

    # -- one annotation ----------------------------------------------------------------------------------------------
    def _take(self, sync_state: SyncState, said: Said, person: str, pulled: Pulled) -> None:
        """Do about an annotation what has not been done about it."""
        before = sync_state.taken.get(said.annotation)
        if before is not None and before.labels == said.labels and said.skipped == (before.role == SKIP):
            return
        try:
            if said.problem is not None:
                raise ConfigError(said.problem)
            if said.skipped:
                role = self._skip(before, said, person, pulled)
            elif before is not None:
                role = self._change(before, said, person, pulled)
            else:
                role = self._new(said, person, pulled)
        except BursarError as error:
            pulled.problems.append(f"item {said.item!r}, annotation {said.annotation}: {error}")
            return
        sync_state.taken[said.annotation] = PulledAnnotation(said.item, said.round, dict(said.labels), role)

    def _open(self, said: Said) -> bool:
        return any((want.round, want.id) == (said.round, said.item) for want in self.session.wanted())

    def _skip(self, before: PulledAnnotation | None, said: Said, person: str, pulled: Pulled) -> str:
        if before is not None and before.role != SKIP:
            raise ConfigError("it was cancelled after it had been taken; what it said stands")
        if self._open(said):
            self.session.skip(_key(said), said.item, "skipped at Label Studio", person)
            pulled.skipped.append(said.item)
        return SKIP

    def _new(self, said: Said, person: str, pulled: Pulled) -> str:
        """The first answer is bought, another person's stands beside it, another by the same person corrects it."""
        earlier = [e for e in self.session.answers(said.item) if e.round == said.round and e.role in (ANSWER, OVERLAP)]
        mine = {entry.task: entry for entry in earlier if entry.annotator == person}
        if self._open(said) or not earlier:
            if not self._open(said):
                raise ConfigError("nobody waits for it any more: it was declined, or its round went on without it")
            self._answer(said, person, ANSWER, pulled)
            pulled.answered.append(said.item)
            return ANSWER
        if not mine:
            self._answer(said, person, OVERLAP, pulled)
            pulled.beside.append(said.item)
            return OVERLAP
        role = next(iter(mine.values())).role
        stands = {
            e.task: e.label for e in self.session.answers(said.item) if e.annotator == person and e.task in said.labels
        }
        if stands != dict(said.labels):
            return self._change(PulledAnnotation(said.item, said.round, stands, role), said, person, pulled)
        return role

    def _answer(self, said: Said, person: str, role: str, pulled: Pulled) -> None:
        # ``said.seconds`` stays behind: the ledger keeps seconds of reading and of every task, and Label Studio knows
        # only how long all of it took together. What cannot be told apart is not made up.
        pulled.cost += self.session.answer(Answer(said.item, said.labels, person, role=role)).cost

    def _change(self, before: PulledAnnotation, said: Said, person: str, pulled: Pulled) -> str:
        """Somebody says something else than before."""
        if before.role != ANSWER:
            raise ConfigError(f"it was changed, and what was taken as {before.role} stands as it was")
        self.session.correct(f"{_key(said)}: {said.updated}", said.item, said.labels, person)
        pulled.corrected.append(said.item)
        return ANSWER


def _key(said: Said) -> str:
    return f"label-studio annotation {said.annotation}"


def watch_project(
    sync: Sync,
    *,
    pause: Callable[[], object],
    told: Callable[[Pulled | Pushed], object],
    progress: Progress = no_progress,
) -> str:
    """Pull until the campaign is over, and open and push the next round whenever one is complete; why it is over."""
    said: set[str] = set()
    while True:
        pulled = sync.pull(progress)
        pulled.problems = [problem for problem in pulled.problems if problem not in said]  # each is told once
        said |= {*pulled.problems}
        if pulled.anything:
            told(pulled)
        if sync.session.ready():
            sync.session.next_round(progress)
            if sync.session.wanted():
                told(sync.push(progress))
        state = sync.session.state()
        if state.phase == "ended":
            return state.why or "it is over"
        if not sync.session.ready():
            pause()
