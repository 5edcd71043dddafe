"""`manage.py holdfast`: becomes the worker, which starts copies of this command as handlers."""

from __future__ import annotations

import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils.connection import ConnectionDoesNotExist

from holdfast_queue.django import Backend
from holdfast_queue.django._compat import task_backends

BAD_CONFIGURATION = 78


class Command(BaseCommand):
    help = "Runs the tasks of this project: becomes the worker of Holdfast."
    requires_system_checks: list[str] = []  # handle() makes them, once: each handler process comes by here

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--backend", default="default", metavar="ALIAS",
                            help="a backend of TASKS (default: default)")
        parser.add_argument("--queue", action="append", metavar="NAME",
                            help="serve this queue, may come several times (default: QUEUES of the backend)")
        parser.add_argument("--processes", type=int, metavar="N", help="handler processes (default: cores)")
        parser.add_argument("--config", metavar="FILE", help="the configuration file of the worker")

    def handle(self, *args: Any, **options: Any) -> None:
        alias, queues, config = options["backend"], options["queue"], options["config"]
        is_handler = "HOLDFAST_FD" in os.environ
        if not is_handler:
            self.check()
        try:
            backend = task_backends[alias]
        except (ConnectionDoesNotExist, ImproperlyConfigured) as error:
            raise CommandError(str(error), returncode=BAD_CONFIGURATION) from None
        if not isinstance(backend, Backend):
            raise CommandError(f"TASKS['{alias}']: expected holdfast_queue.django.Backend, found "
                               f"{type(backend).__module__}.{type(backend).__qualname__}", returncode=BAD_CONFIGURATION)
        try:
            hf = backend.hf
            backend.load()
        except ImproperlyConfigured as error:
            raise CommandError(str(error), returncode=BAD_CONFIGURATION) from None
        if not hf.jobs:
            raise CommandError("expected tasks in the module `tasks` of an app, in what ROOT_URLCONF imports, or in "
                               f"TASKS['{alias}']['OPTIONS']['modules'], found none", returncode=BAD_CONFIGURATION)
        if queues is None and config is None and backend.queues:
            queues = sorted({*backend.queues, *(schedule.frame["queue"] for schedule in hf.schedules.values())})
        connections.close_all()
        hf.run(queues=queues, processes=options["processes"], config=config)
