"""A thin client of a Label Studio server, over its SDK: what Bursar needs of it, with errors for people.

What only asks is tried again when the connection fails. What writes is not, unless nothing was sent: the same tasks
imported twice would be there twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from bursar.errors import ConfigError, StudioError
from bursar.web.labelstudio.tasks import MODEL

try:
    import httpx
except ImportError:  # it comes with the SDK
    raise ConfigError("Label Studio's SDK is not installed", fix="pip install 'bursar[label-studio]'") from None

if TYPE_CHECKING:
    from label_studio_sdk import LabelStudio

T = TypeVar("T")
TIMEOUT = 60.0  # seconds
TRIES = 4
FIRST_PAUSE = 0.5  # seconds before the second try; each next one is twice as long
PAGE = 100  # tasks
EVENTS = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED")
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Studio:
    """A Label Studio server, as somebody with a token."""

    def __init__(
        self, url: str, token: str, *, timeout: float = TIMEOUT, pause: Callable[[float], object] = time.sleep
    ) -> None:
        self.url = url.rstrip("/")
        self._pause = pause
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"{url!r} is no address of a server", fix="such as http://localhost:8080")
        if not token.strip():
            raise ConfigError("there is no token for Label Studio", fix="copy yours from Account & Settings there")
        self._sdk = self._try(lambda: _sdk(self.url, token.strip(), timeout))

    # -- who and where -----------------------------------------------------------------------------------------------
    def whoami(self) -> str:
        """The address of whoever the token belongs to: the first thing to ask, for it tells whether all is well."""
        return self._try(lambda: _address(self._sdk.users.whoami()))

    def people(self) -> dict[int, str]:
        """The addresses of all users by their number."""
        return self._try(lambda: {int(user.id or 0): _address(user) for user in self._sdk.users.list()})

    # -- projects ----------------------------------------------------------------------------------------------------
    def find_project(self, mark: str, known: int | None = None) -> int | None:
        """The project whose description or configuration holds a mark: the known one, or any."""
        if known is not None:
            try:
                if _holds(self._try(lambda: self._sdk.projects.get(id=known)), mark):
                    return known
            except StudioError as error:
                if error.status != 404:
                    raise
        for project in self._try(lambda: [*self._sdk.projects.list()]):
            if _holds(project, mark):
                return int(project.id or 0)
        return None

    def create_project(self, title: str, description: str, config: str) -> int:
        """A new project. What somebody skips there is asked of nobody else, as here."""
        made = self._once(
            lambda: self._sdk.projects.create(
                title=title.ljust(3, "."),  # Label Studio wants three characters
                description=description,
                label_config=config,
                model_version=MODEL,
                show_collab_predictions=True,
                enable_empty_annotation=True,
                skip_queue="IGNORE_SKIPPED",
                request_options={"max_retries": 0},
            )
        )
        return int(made.id or 0)

    def page_of(self, project: int) -> str:
        """The address of a project's page."""
        return f"{self.url}/projects/{project}/data"

    # -- tasks -------------------------------------------------------------------------------------------------------
    def pages(self, project: int) -> Iterator[list[dict[str, Any]]]:
        """All tasks of a project with their annotations, a page at a time."""
        number = seen = 0
        total = 1
        while seen < total:
            number += 1
            ask = partial(self._sdk.tasks.list, project=project, fields="all", page=number, page_size=PAGE)
            page: Any = self._try(ask)
            tasks = [_plain(task) for task in page.items or ()]
            total = int(page.response.total) if tasks else 0
            seen += len(tasks)
            yield tasks

    def import_tasks(self, project: int, tasks: Sequence[Mapping[str, Any]]) -> int:
        """Add tasks; how many the server took."""
        taken = self._once(
            lambda: self._sdk.projects.import_tasks(
                id=project,
                request=[dict(task) for task in tasks],  # type: ignore[misc]
                return_task_ids=True,
                request_options={"max_retries": 0},
            )
        )
        return int(taken.task_count or 0)

    def register_webhook(self, project: int, url: str) -> int:
        """Let the server tell an address of every annotation; one that is told already is not told twice."""
        for hook in self._try(lambda: self._sdk.webhooks.list(project=str(project))):
            if hook.url == url and hook.project == project:
                return int(hook.id)
        made = self._once(
            lambda: self._sdk.webhooks.create(
                url=url,
                project=project,
                actions=[*EVENTS],
                send_for_all_actions=False,
                request_options={"max_retries": 0},
            )
        )
        return int(made.id)

    # -- asking ------------------------------------------------------------------------------------------------------
    def _try(self, ask: Callable[[], T]) -> T:
        """Ask, and again if the connection fails: asking changes nothing."""
        return self._asked(ask, httpx.TransportError)

    def _once(self, write: Callable[[], T]) -> T:
        """Write, and again only if nothing was sent."""
        return self._asked(write, NEVER_SENT)

    def _asked(self, ask: Callable[[], T], again: type[Exception] | tuple[type[Exception], ...]) -> T:
        from label_studio_sdk.core.api_error import ApiError

        for left in range(TRIES - 1, -1, -1):
            try:
                return ask()
            except ApiError as error:
                raise self._refused(error.status_code, error.body) from None
            except httpx.UnsupportedProtocol:
                raise ConfigError(f"{self.url!r} is no address of a server") from None
            except httpx.TransportError as error:
                if not left or not isinstance(error, again):
                    raise self._unreachable(error) from None
                self._pause(FIRST_PAUSE * 2 ** (TRIES - 1 - left))
            except (ValueError, TypeError, AttributeError) as error:  # an answer that the SDK cannot read
                raise self._stranger() from error
        raise AssertionError("the last try returns or raises")

    def _unreachable(self, error: httpx.TransportError) -> StudioError:
        slow = isinstance(error, httpx.TimeoutException)
        return StudioError(
            f"{self.url} {'does not answer in time' if slow else 'cannot be reached'}: {error or type(error).__name__}",
            fix="see that Label Studio runs there and run the same command again; nothing is done twice",
        )

    def _stranger(self) -> StudioError:
        return StudioError(
            f"{self.url} does not answer like Label Studio",
            fix="give the address of its front page, such as http://localhost:8080",
        )

    def _refused(self, status: int | None, body: Any) -> StudioError:
        if status is not None and status < 400:
            return self._stranger()
        detail = body.get("detail") or body.get("validation_errors") if isinstance(body, Mapping) else None
        why = f"{self.url} refuses: {detail or f'status {status}'}".removesuffix(".")
        if status in (401, 403):
            return StudioError(why, status=status, fix="give a token that is valid there")
        if status == 404 or detail is None:
            return StudioError(why, status=status, fix="see that the address is that of Label Studio's front page")
        return StudioError(why, status=status)


def _sdk(url: str, token: str, timeout: float) -> LabelStudio:
    try:
        from label_studio_sdk import LabelStudio
    except ImportError:
        raise ConfigError("Label Studio's SDK is not installed", fix="pip install 'bursar[label-studio]'") from None
    return LabelStudio(base_url=url, api_key=token, timeout=timeout, max_retries=0)  # type: ignore[no-untyped-call]


def _address(user: Any) -> str:
    if not isinstance(user.email, str) or not user.email:
        raise TypeError("a user has an address")
    return user.email


def _holds(project: Any, mark: str) -> bool:
    return mark in f"{project.description} {project.label_config}"


def _plain(task: Any) -> dict[str, Any]:
    """A task of the SDK as JSON has it."""
    found: dict[str, Any] = task.dict()
    annotations = [a if isinstance(a, Mapping) else a.dict() for a in found.get("annotations") or ()]
    return found | {"annotations": annotations}
