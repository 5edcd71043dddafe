"""The trace context of OpenTelemetry, if the program has it: it travels in the headers of a job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._app import Call


def is_there() -> bool:
    return "opentelemetry.trace" in sys.modules


def inject(call: Call) -> None:
    if not is_there():
        return
    from opentelemetry import propagate, trace  # pyright: ignore[reportMissingImports]
    if trace.get_current_span().get_span_context().is_valid and "traceparent" not in call.headers:
        propagate.inject(call.headers)


def context_of(headers: Any) -> Any:
    """For a middleware that makes the span of a run: its parent, or what it links to."""
    from opentelemetry import propagate  # pyright: ignore[reportMissingImports]
    return propagate.extract(dict(headers))
