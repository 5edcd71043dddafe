"""The plots of docs/performance.md, drawn by gnuplot from the series of the questions."""
import os
import shutil
import subprocess
import sys

# plot -> file, x axis, whether x is on a logarithmic scale, y axis
PLOTS = {"batch": ("performance-batch.svg", "jobs at a time", True, "jobs a second"),
         "workers": ("performance-workers.svg", "worker processes", False, "jobs a second"),
         "waiters": ("performance-waiters.svg", "who wait for one lock", True,
                     "hand-overs a second")}
COLOURS = ["#1b6ca8", "#c8553d", "#5b8c5a", "#8d6a9f", "#b08900", "#555555"]


def script(series, x_axis, logarithmic, y_axis, path):
    """What gnuplot is told. Every line has its points, so that colours are not all there is."""
    lines = ["set terminal svg size 720,400 font 'sans-serif,13' background '#ffffff'",
             f"set output '{path}'", "set border 3 lc '#888888'", "set tics nomirror",
             "set grid ytics lc '#dddddd' lt 1", "set key outside top center horizontal",
             f"set xlabel '{x_axis}'", f"set ylabel '{y_axis}'", "set yrange [0:*]",
             "set format '%.0s%c'", "set rmargin 4"]  # 200000 as 200k
    if logarithmic:
        lines += ["set logscale x 10"]
    plot = []
    for i, one in enumerate(series):
        lines += [f"$data{i} << END", *(f"{x} {y}" for x, y in one["points"]), "END"]
        title = one["name"].replace("'", "''")
        plot.append(f"$data{i} using 1:2 with linespoints lw 2 ps 0.7 pt {5 + 2 * (i % 3)} "
                    f"lc '{COLOURS[i % len(COLOURS)]}' title '{title}'")
    lines.append("plot " + ", ".join(plot))
    return "\n".join(lines) + "\n"


def draw(series, directory):
    """Draws the plots that these series belong to; the others stay as they are."""
    for plot, (name, x_axis, logarithmic, y_axis) in PLOTS.items():
        mine = [one for one in series if one["plot"] == plot]
        if not mine:
            continue
        if not shutil.which("gnuplot"):
            print(f"bench: {name} is not drawn: gnuplot is not installed", file=sys.stderr)
            continue
        path = os.path.join(directory, name)
        subprocess.run(["gnuplot"], input=script(mine, x_axis, logarithmic, y_axis, path + ".new"),
                       text=True, check=True)
        os.replace(path + ".new", path)
