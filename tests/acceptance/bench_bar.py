"""One question of the bench, and every bar in its table must be reached."""
import json
import os

from support import SOURCE, main, require, run_step, say


def check_bars(name, seconds):
    """Runs bench/questions/NAME, shows its table, ends the process."""
    def check(rig):
        found = json.loads(run_step(rig, [os.path.join(SOURCE, "bench/questions", name), "--json"],
                                    cwd=SOURCE)[-1])
        barred = [row for row in found["rows"] if row["reached"] is not None]
        missed = [row for row in barred if not row["reached"]]
        require(barred, "no row has a bar")
        require(not missed, "not reached: " + "; ".join(
            f"{row['what']}: {shown(row)}, {row['bar']}" for row in missed))
        return "; ".join(f"{row['what']}: {shown(row)} ({row['bar']})" for row in barred)

    main(check, seconds=seconds)


def shown(row):
    value = row["ours"] if row["ratio"] is None else row["ratio"]
    return f"{value:.2f}" if isinstance(value, float) else value
