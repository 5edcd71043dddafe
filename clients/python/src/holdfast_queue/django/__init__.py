"""Holdfast as a backend of Django's tasks.

    INSTALLED_APPS = [..., "holdfast_queue.django"]
    TASKS = {"default": {"BACKEND": "holdfast_queue.django.Backend", "OPTIONS": {"url": "redis://localhost"}}}

`manage.py holdfast` runs the tasks. It is for django.tasks of Django 6 and newer, and for the package
django-tasks with an older Django."""

from ._backend import Backend, Task

__all__ = ["Backend", "Task"]
