"""A thin client for a Label Studio server, based on its SDK.

Reads are retried when the connection fails. Writes are retried only if nothing was sent, because importing the same
tasks twice would duplicate them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeVar

from bursar.errors import ConfigError, StudioError
from bursar.web.labelstudio.tasks import MODEL

try:
    import httpx
    from label_studio_sdk import LabelStudio
    from label_studio_sdk.core.api_error import ApiError
except ImportError:
    raise ConfigError("Label Studio's SDK is not installed", fix="pip install 'bursar[label-studio]'") from None

T = TypeVar("T")
TIMEOUT = 60.0  # seconds
TRIES = 4
FIRST_PAUSE = 0.5  # seconds before the second try; doubles each time
PAGE = 100  # tasks
EVENTS = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED")
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Studio:
    """A Label Studio server, accessed with a token."""

    def __init__(
        self, url: str, token: str, *, timeout: float = TIMEOUT, pause: Callable[[float], object] = time.sleep
    ) -> None:
        self.url, self._pause = url.rstrip("/"), pause
        options: Any = {"timeout": timeout, "max_retries": 0}
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"{url!r} is not a server address", fix="use one like http://localhost:8080")
        if not token.strip():
            raise ConfigError("no token for Label Studio", fix="copy it from Account & Settings in Label Studio")
        sdk: Any = LabelStudio  # its constructor has no types
        self._sdk: LabelStudio = self._read(lambda: sdk(base_url=self.url, api_key=token.strip(), **options))

    # -- users -------------------------------------------------------------------------------------------------------
    def whoami(self) -> str:
        """The email address of the token's owner. Call it first, to check address and token."""
        return self._read(lambda: _address(self._sdk.users.whoami()))

    def people(self) -> dict[int, str]:
        """The email addresses of all users by id."""
        return self._read(lambda: {int(user.id or 0): _address(user) for user in self._sdk.users.list()})

    # -- projects ----------------------------------------------------------------------------------------------------
    def find_project(self, mark: str, known: int | None = None) -> int | None:
        """The project whose description or configuration contains a mark; tries the known id first."""
        if known is not None:
            try:
                if _holds(self._read(lambda: self._sdk.projects.get(id=known)), mark):
                    return known
            except StudioError as error:
                if error.status != 404:
                    raise
        projects = self._read(lambda: [*self._sdk.projects.list()])
        return next((int(project.id or 0) for project in projects if _holds(project, mark)), None)

    def create_project(self, title: str, description: str, config: str) -> int:
        """Create a project. Skipped tasks are not given to others, as in Bursar."""
        request = partial(
            self._sdk.projects.create,
            title=title.ljust(3, "."),  # Label Studio requires three characters
            description=description,
            label_config=config,
            model_version=MODEL,
            show_collab_predictions=True,
            enable_empty_annotation=True,
            skip_queue="IGNORE_SKIPPED",
            request_options={"max_retries": 0},
        )
        return int(self._write(request).id or 0)

    def page_of(self, project: int) -> str:
        return f"{self.url}/projects/{project}/data"

    # -- tasks -------------------------------------------------------------------------------------------------------
    def pages(self, project: int) -> Iterator[list[dict[str, Any]]]:
        """All tasks of a project with their annotations, page by page."""
        seen = 0
        for number in count(1):
            request = partial(self._sdk.tasks.list, project=project, fields="all", page=number, page_size=PAGE)
            page: Any = self._read(request)
            tasks = [_plain(task) for task in page.items or ()]
            yield tasks
            seen += len(tasks)
            if not tasks or seen >= int(page.response.total):
                return

    def import_tasks(self, project: int, tasks: Sequence[Mapping[str, Any]]) -> int:
        """Import tasks; returns how many were imported."""
        options: Any = {"return_task_ids": True, "request_options": {"max_retries": 0}}
        sent: Any = [dict(task) for task in tasks]
        taken = self._write(lambda: self._sdk.projects.import_tasks(id=project, request=sent, **options))
        return int(taken.task_count or 0)

    def register_webhook(self, project: int, url: str) -> int:
        """Register a webhook for annotation events, unless it exists already. Returns its id."""
        for hook in self._read(lambda: self._sdk.webhooks.list(project=str(project))):
            if hook.url == url and hook.project == project:
                return int(hook.id)
        options: Any = {"send_for_all_actions": False, "request_options": {"max_retries": 0}}
        made = self._write(lambda: self._sdk.webhooks.create(url=url, project=project, actions=[*EVENTS], **options))
        return int(made.id)

    # -- requests ----------------------------------------------------------------------------------------------------
    def _write(self, request: Callable[[], T]) -> T:
        """Send a write request; retried only if nothing was sent."""
        return self._read(request, NEVER_SENT)

    def _read(self, request: Callable[[], T], retry_on: tuple[type[Exception], ...] = (httpx.TransportError,)) -> T:
        """Send a request; retried if the connection fails in one of these ways."""
        for left in range(TRIES - 1, -1, -1):
            try:
                return request()
            except ApiError as error:
                raise self._refused(error.status_code, error.body) from None
            except httpx.UnsupportedProtocol:
                raise ConfigError(f"{self.url!r} is not a server address") from None
            except httpx.TransportError as error:
                if not left or not isinstance(error, retry_on):
                    raise self._unreachable(error) from None
                self._pause(FIRST_PAUSE * 2 ** (TRIES - 1 - left))
            except (ValueError, TypeError, AttributeError) as error:  # a response that the SDK cannot read
                raise self._not_label_studio() from error
        raise AssertionError("the last try returns or raises")

    def _unreachable(self, error: httpx.TransportError) -> StudioError:
        slow = isinstance(error, httpx.TimeoutException)
        return StudioError(
            f"{self.url} {'does not answer in time' if slow else 'cannot be reached'}: {error or type(error).__name__}",
            fix="check that Label Studio is running there, and run the command again; nothing is done twice",
        )

    def _not_label_studio(self) -> StudioError:
        return StudioError(
            f"{self.url} does not respond like Label Studio",
            fix="use the address of its front page, such as http://localhost:8080",
        )

    def _refused(self, status: int | None, body: Any) -> StudioError:
        if status is not None and status < 400:
            return self._not_label_studio()
        detail = body.get("detail") or body.get("validation_errors") if isinstance(body, Mapping) else None
        why = f"{self.url} refuses: {detail or f'status {status}'}".removesuffix(".")
        fix = None
        if status in (401, 403):
            fix = "use a valid token"
        elif status == 404 or detail is None:
            fix = "check that the address is Label Studio's front page"
        return StudioError(why, status=status, fix=fix)


def _address(user: Any) -> str:
    if not isinstance(user.email, str) or not user.email:
        raise TypeError("a user must have an email address")
    return user.email


def _holds(project: Any, mark: str) -> bool:
    return mark in f"{project.description} {project.label_config}"


def _plain(task: Any) -> dict[str, Any]:
    """An SDK task as plain JSON."""
    found: dict[str, Any] = task.dict()
    annotations = [a if isinstance(a, Mapping) else a.dict() for a in found.get("annotations") or ()]
    return found | {"annotations": annotations}
