"""Each block of Python in docs/python.md runs, in the test mode, and so does our side of its tables."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import re
import types
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

import holdfast_queue
from holdfast_queue import Holdfast, Job, JobRef, current_job
from holdfast_queue.errors import Verdict
from holdfast_queue.testing import Fake

DOCS = Path(__file__).parents[3] / "docs"


def test_blocks(holdfast_fake: Fake) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "python.md").read_text(), re.S)
    assert len(blocks) >= 6
    names: dict[str, Any] = {
        "list_of_addresses": ["a@example.com"], "current_tenant": lambda: "7", "current_job": current_job, "Job": Job,
        "use_tenant": lambda name: contextlib.nullcontext(), "__name__": "jobs",
        "sign_up": lambda to: names["send_email"].enqueue(to, subject="hi"),
    }

    async def run(text: str) -> None:
        code = compile(text, "python.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = types.FunctionType(code, names)()
        if inspect.iscoroutine(value):
            await value

    for i, text in enumerate(blocks):
        if i > 1 and "@hf." in text:
            names["hf"].jobs.clear()
        send_email = names.get("send_email")
        asyncio.run(run(text))
        if "hf.testing" not in text and i > 1 and send_email is not None:
            names["send_email"] = send_email
            names["hf"].jobs["email.send"] = send_email
    assert len(holdfast_fake.of("email.send")) >= 4
    assert holdfast_fake.of("report.make")[0].queue == "slow"
    holdfast_fake.clear()
    names["test_sign_up"](holdfast_fake)


# ---- coming from another queue ----

def rows_of(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    text = (DOCS / "python.md").read_text()
    part = text[text.index(f"\n{heading}\n"):].split("\n##", 2)[1]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r" \| | \|$", line[2:])] for line in lines[1:]]


@pytest.mark.parametrize("heading", ["### From Celery", "### From RQ", "### From dramatiq"])
def test_our_side_of_each_line_is_good_code(heading: str, holdfast_fake: Fake) -> None:
    """A call that needs Redis or becomes the worker is checked for its arguments alone."""
    hf = Holdfast("unix:///nowhere")

    @hf.job("email.send")
    def send_email(to: str, subject: str) -> None: ...

    ref = create_autospec(JobRef, instance=True)
    hf.run = create_autospec(hf.run)  # type: ignore[method-assign]
    hf.ref = create_autospec(hf.ref, return_value=ref)  # type: ignore[method-assign]
    names = {**vars(holdfast_queue), "hf": hf, "send_email": send_email, "ref": ref, "job": Job.fake()}
    spans = [span for row in rows_of(heading) for span in re.findall(r"`([^`]+)`", row[1])]
    code = [span for span in spans if not re.match(r"holdfast |max_jobs|max_rss|async def", span)]
    assert len(code) >= 15
    for span in code:
        hf.jobs.clear()
        hf.schedules.clear()
        if span.startswith("@"):
            takes = {"@hf.middleware": "job, call", "@hf.on_enqueue": "call"}.get(span, "")
            exec(f"{span}\ndef given({takes}): ...", dict(names))
        elif span.startswith("raise "):
            with pytest.raises(Verdict):
                exec(span, dict(names))
        else:
            exec(span, dict(names))
