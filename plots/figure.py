#!/usr/bin/python3
"""Draws figures:  figure.py KIND FILES --out STEM  writes STEM.svg, STEM.png and STEM.csv. The same as millrace plot.

Exit codes as millrace's: 0 done, 2 usage, 3 bad input file.
"""
import argparse
import importlib
import sys

from figure_style import exit_code, save

# kind, its module, one line of help
KINDS = {
    "curves": "accuracy against compute, from results of runs with a learner",
    "pareto": "the Pareto frontier of a sweep",
    "heatmap": "a metric over buffer size and split, from a sweep or from results",
    "histograms": "staleness, uses and last use, from results",
    "utilisation": "what the GPUs do, from results",
    "split": "throughput against the split of GPUs, from a sweep or from results",
    "timeline": "updates, versions and the store over time, from a step log",
}


def main(words):
    parser = argparse.ArgumentParser(prog="millrace plot", description="Draws figures of results.")
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    modules = {}
    for kind, text in KINDS.items():
        one = kinds.add_parser(kind, help=text, description=text[0].upper() + text[1:] + ".")
        modules[kind] = importlib.import_module(kind)
        modules[kind].arguments(one)
        one.add_argument("--out", required=True, metavar="STEM", help="writes STEM.svg, STEM.png and STEM.csv")
        one.add_argument("--pdf", action="store_true", help="STEM.pdf as well")
    options = parser.parse_args(words)

    def work():
        figure, rows = modules[options.kind].make(options)
        save(figure, rows, options.out, options.pdf)

    return exit_code("millrace plot", work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
