"""The jobs of the application: a report about a table, and the removal of old reports.

The worker runs this program, as worker.yaml says. web.py imports it, and enqueues."""

from __future__ import annotations

import csv
import io
import os
import re
import sqlite3
import time
from contextlib import closing
from decimal import Decimal
from typing import Any

from holdfast_queue import Dead, Holdfast, Job

DATABASE = os.environ.get("REPORTS_DB", "reports.db")
KEPT_DAYS = 7
COLUMNS_MAX = 50
NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,9})?")

hf = Holdfast(queue="reports")


def database() -> sqlite3.Connection:
    """The list of reports. Several processes use it at the same time."""
    db = sqlite3.connect(DATABASE, timeout=10)
    db.execute("CREATE TABLE IF NOT EXISTS reports (id TEXT PRIMARY KEY, title TEXT, rows INTEGER, made REAL)")
    return db


def read_table(job: Job, table: str) -> tuple[list[str], list[list[str]]]:
    """Its head and its rows. A mistake in the table is no reason to try again: the job is dead, with a sentence
    that web.py shows."""
    lines = csv.reader(io.StringIO(table), strict=True)
    size = table.count("\n") + 1
    try:
        head = next(lines, [])
        if not 1 <= len(head) <= COLUMNS_MAX:
            raise Dead(f"line 1: expected 1 to {COLUMNS_MAX} columns, found {len(head)}")
        rows = []
        for row in lines:
            if len(row) != len(head) and row:
                raise Dead(f"line {lines.line_num}: expected {len(head)} cells, found {len(row)}")
            if row:
                rows.append(row)
            if len(rows) % 1000 == 999:
                job.progress(min(100, 100 * lines.line_num // size), f"line {lines.line_num}")
    except csv.Error as error:
        raise Dead(f"line {lines.line_num}: {error}") from None
    if not rows:
        raise Dead("expected rows below the head of the table, found none")
    return head, rows


def describe(name: str, cells: list[str]) -> dict[str, Any]:
    """What the report says about a column."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    about = {"name": name[:100], "empty": len(cells) - len(filled)}
    if filled and all(map(NUMBER.fullmatch, filled)):
        numbers = [Decimal(cell) for cell in filled]
        mean = round(sum(numbers) / len(numbers), 2)
        return about | {"sum": str(sum(numbers)), "least": str(min(numbers)), "most": str(max(numbers)),
                        "mean": str(mean)}
    return about | {"different": len(set(filled))}


@hf.job("report.make", timeout="30s", max_attempts=3, keep=f"{KEPT_DAYS}d")
def make_report(job: Job, title: str, table: str) -> dict[str, Any]:
    head, rows = read_table(job, table)
    columns = [describe(name, [row[i] for row in rows]) for i, name in enumerate(head)]
    with closing(database()) as db, db:  # a job may run twice: its id makes the second run harmless
        db.execute("INSERT OR REPLACE INTO reports VALUES (?, ?, ?, ?)", (job.id, title, len(rows), time.time()))
    return {"title": title, "rows": len(rows), "columns": columns}


@hf.job("reports.tidy", timeout="1m")
def tidy(days: int = KEPT_DAYS) -> None:
    """The schedule of worker.yaml enqueues it each night."""
    with closing(database()) as db, db:
        old = db.execute("DELETE FROM reports WHERE made < ?", (time.time() - days * 86400,)).rowcount
    print(f"removed {old} of the list of reports")


if __name__ == "__main__":
    hf.run()
