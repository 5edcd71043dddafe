"""A task in a module that OPTIONS["modules"] names, and one under another name than its function's."""

from django_site.tasks import task


@task
def named(text: str) -> str:
    return text


def plain() -> None:
    pass


renamed = task(plain)
