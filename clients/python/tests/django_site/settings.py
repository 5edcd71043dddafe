"""A project of Django for test_django.py. The environment says what differs."""

from __future__ import annotations

import json
import os

import django

SECRET_KEY = "of a test"
USE_TZ = True
ROOT_URLCONF = "django_site.urls"
INSTALLED_APPS = ["django_site", "holdfast_queue.django"]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ.get("SITE_DB", ":memory:")}}
DUMMY = f"{'django.tasks' if django.VERSION >= (6, 0) else 'django_tasks'}.backends.dummy.DummyBackend"
OPTIONS = {"url": os.environ.get("REDIS_URL", "redis://localhost"), "modules": ["django_site.more"]}
TASKS = {
    "default": {"BACKEND": "holdfast_queue.django.Backend", "QUEUES": ["default", "second"],
                "OPTIONS": {**OPTIONS, **json.loads(os.environ.get("SITE_OPTIONS", "{}"))}},
    "other": {"BACKEND": DUMMY},
}
