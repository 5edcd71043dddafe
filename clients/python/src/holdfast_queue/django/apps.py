"""The app, which brings the command `manage.py holdfast`."""

from django.apps import AppConfig


class HoldfastConfig(AppConfig):
    name = "holdfast_queue.django"
    label = "holdfast_queue"
    verbose_name = "Holdfast"
