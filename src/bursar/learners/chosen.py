"""What Python programs give as ``learner=``: a name, settings, a learner, or a model of their own.

A campaign's settings are plain values, so that it can be continued and its models found again. A model that is an
object is described in them, as far as it can be, and handed to the campaign beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bursar.errors import ConfigError
from bursar.learners.learner import LEARNERS, Learner, make_learner
from bursar.tasks import Regression, Task

UNKNOWN = "an object"  # in place of the description of one that cannot be described
KINDS = (
    'a name such as "probe", settings such as {"name": "transformer", "steps": 300}, a Learner, a scikit-learn '
    "estimator, an encoder with encode(texts), bursar.from_function(f) or bursar.from_transformers(folder)"
)


@dataclass(frozen=True)
class ChosenLearner:
    """A learner as a campaign's settings describe it, and how to make it if they are not enough."""

    settings: Mapping[str, Any]  # plain values: the [learner] table
    maker: Callable[[Mapping[str, Task]], Learner] | None = None  # None: the settings say it all
    unnamed: str | None = None  # the option that could not be described, so that a folder cannot tell it from another

    def make(self, tasks: Mapping[str, Task]) -> Learner | None:
        """The learner of these tasks; ``None`` if a campaign can make it from its settings."""
        return None if self.maker is None else self.maker(tasks)


def choose_learner(given: Any, tasks: Mapping[str, Task], images: bool = False) -> ChosenLearner:
    """Read what was given as ``learner=``."""
    if given is None:
        return ChosenLearner({"name": usual_learner(tasks, images)})
    if isinstance(given, str):
        LEARNERS[given]  # raises for an unknown name
        return ChosenLearner({"name": given})
    if isinstance(given, Mapping):
        return _of_settings(dict(given))
    if isinstance(given, type) and issubclass(given, Learner):
        return ChosenLearner({"name": _registered(given)})
    if isinstance(given, Learner):
        return _of_instance(given, tasks)
    if hasattr(given, "encode") and not hasattr(given, "fit_transform"):
        return _of_settings({"name": "probe", "encoder": given})
    if hasattr(given, "fit") and hasattr(given, "get_params"):
        return _of_settings({"name": "scikit", "estimator": given})
    if hasattr(given, "config") and hasattr(given, "forward"):
        raise ConfigError(
            f"learner = {type(given).__name__}: a model of transformers needs its tokenizer",
            fix="give learner=bursar.from_transformers(model, tokenizer)",
        )
    if hasattr(given, "predict_proba") or callable(given):
        return _of_settings({"name": "function", "function": given})
    raise ConfigError(f"learner = {given!r:.100} is no model", fix=f"give {KINDS}")


def usual_learner(tasks: Mapping[str, Task], images: bool = False) -> str:
    """The default: a probe, which is fitted within a second, or a network where a probe cannot train a task."""
    if images:
        return "image-cnn"
    able = all(task.classes is not None or isinstance(task, Regression) for task in tasks.values())
    return "probe" if able else "transformer"


def _of_settings(settings: dict[str, Any]) -> ChosenLearner:
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError("learner: the settings do not name it", fix='add it, as in {"name": "transformer"}')
    LEARNERS[name]
    plain = {key: described(value) for key, value in settings.items()}
    objects = [key for key, value in settings.items() if not is_plain(value)]
    if not objects:
        return ChosenLearner({"name": name, **settings})
    unnamed = next((key for key in objects if plain[key] is None), None)
    known = {key: UNKNOWN if value is None and key in objects else value for key, value in plain.items()}
    # Models come without the names that they were given.
    own = {key: value.model if hasattr(value, "bursar_name") else value for key, value in settings.items()}
    return ChosenLearner({"name": name, **known}, lambda tasks: make_learner(name, tasks, own), unnamed)


def _of_instance(learner: Learner, tasks: Mapping[str, Task]) -> ChosenLearner:
    if dict(learner.tasks) != dict(tasks):
        raise ConfigError(
            f"learner: it was made for the tasks {', '.join(learner.tasks)}, and these are {', '.join(tasks)}",
            fix="make it with corpus.with_tasks([...]).schema, or give its name and settings",
        )
    known = getattr(learner, "name", None)
    name = known if isinstance(known, str) and known in LEARNERS else _registered(type(learner))
    options = learner.options() if hasattr(learner, "options") else None
    about = options if isinstance(options, Mapping) and is_plain(options) else {"made": UNKNOWN}
    return ChosenLearner({"name": name, **about}, lambda tasks: learner, None if options is about else "learner")


def _registered(kind: type[Learner]) -> str:
    """The name of a class of learners, which is registered under it."""
    if kind.__name__ in LEARNERS and LEARNERS[kind.__name__] is not kind:
        raise ConfigError(f"there is another learner {kind.__name__!r}", fix="give your class another name")
    LEARNERS.add(kind.__name__, kind, listed=False)
    return kind.__name__


# -- descriptions ------------------------------------------------------------------------------------------------------
def is_plain(value: Any) -> bool:
    """Whether a value is made of strings, numbers, lists and dictionaries, as in a settings file."""
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def described(value: Any) -> Any:
    """A value in plain form; an object in words that differ where it differs, or ``None`` if there are none."""
    if is_plain(value):
        return value
    if isinstance(value, Mapping):
        found = {str(key): described(part) for key, part in value.items()}
        return None if None in found.values() else found
    if isinstance(value, list | tuple):
        parts = [described(part) for part in value]
        return None if any(part is None and value[at] is not None for at, part in enumerate(parts)) else parts
    named = getattr(value, "bursar_name", None)
    if isinstance(named, str):
        return named
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _described_estimator(value)
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str) and "<" not in name:
        return f"{value.__module__}:{name}"
    return None


def _described_estimator(estimator: Any) -> str | None:
    settings = estimator.get_params(deep=False)
    parts = {key: described(value) for key, value in settings.items()}
    if any(part is None and settings[key] is not None for key, part in parts.items()):
        return None
    kind, shown = type(estimator), ", ".join(f"{key}={part!r}" for key, part in sorted(parts.items()))
    return f"{kind.__module__}.{kind.__qualname__}({shown})"
