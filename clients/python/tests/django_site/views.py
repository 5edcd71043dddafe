"""A task beside the view that enqueues it."""

from django_site.tasks import task


@task
def seen(text: str) -> str:
    return text
