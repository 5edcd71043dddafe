"""The tasks of Django 6 and newer, or those of the package django-tasks with an older Django."""

from __future__ import annotations

from typing import Any

import django

if django.VERSION >= (6, 0):
    from django.tasks import task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import InvalidTask, InvalidTaskBackend, TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
else:
    try:
        import django_tasks  # noqa: F401
    except ImportError as error:
        raise ImportError("holdfast_queue.django: expected Django 6 or newer, or the package django-tasks, found "
                          f"Django {django.get_version()}: {error}") from None
    from django_tasks import task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import InvalidTaskBackendError as InvalidTaskBackend
    from django_tasks.exceptions import InvalidTaskError as InvalidTask
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json


def task_at(path: str) -> Any:
    """The task whose function has this path, or None: the name is that of something else, or of nothing."""
    from django.utils.module_loading import import_string
    try:
        found = import_string(path)
    except ImportError:
        return None
    return found if isinstance(found, Task) else None


__all__ = [
    "BaseTaskBackend", "InvalidTask", "InvalidTaskBackend", "Task", "TaskContext", "TaskError", "TaskResult",
    "TaskResultDoesNotExist", "TaskResultStatus", "normalize_json", "task_at", "task_backends", "task_enqueued",
    "task_finished", "task_started",
]
