"""Choose settings of DP-GD on tables of choice alone: one for all tables, and a few for private tuning.

    python -m bench.fixed [--draws 4] [--json FILE]

For every kind of table and epsilon: the setting whose mean over the tables of choice is best, and those that
are best on one of them. A table never takes part in what is chosen for itself. Best is the largest AUC,
or accuracy, less the log-loss, or the largest R². `bench.peers` and `bench.multiclass` read what was chosen.
"""

import argparse
from dataclasses import asdict
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

from bench import class_tables, halves, rivals
from bench.comparison import CLIPS, EPSILONS, MOMENTA, RATES, STEPS, Comparison
from bench.multiclass import ClassComparison
from bench.rivals import Descent
from bench.saving import save
from bench.tuning import CHOSEN


def worth(scored):
    """One number for the scores of a setting."""
    if "r2" in scored:
        return scored["r2"]
    return scored.get("auc", scored.get("accuracy")) - scored["log_loss"]


def tried(kind, name, settings, draws):
    """What every setting is worth on a table of choice."""
    if kind == "several classes":
        found = ClassComparison(class_tables.TABLES[name](), draws).descents(settings, draws)
    else:
        table = (halves.TUNING | halves.REGRESSIONS)[name](0)
        found = Comparison(*table, draws).try_all(rivals.gradient_descent, settings, draws)
    return {setting: worth(scored) for setting, scored in found.items()}


def chosen(worths, epsilon, left_out):
    """The best setting of all other tables together, and the best of each."""
    others = [found for name, found in worths.items() if name != left_out]
    settings = [setting for setting in others[0] if setting.epsilon == epsilon]
    fixed = max(settings, key=lambda setting: np.mean([found[setting] for found in others]))
    best = dict.fromkeys(max(settings, key=found.__getitem__) for found in others)
    return {"fixed": asdict(fixed), "few": [asdict(setting) for setting in best]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--json", default=CHOSEN)
    options = parser.parse_args()
    grid = {Descent(*setting) for setting in product(EPSILONS, STEPS, CLIPS, RATES, MOMENTA)}
    several = [name for name in class_tables.TABLES if name not in class_tables.HELD_OUT]
    kinds = {"two classes": halves.TUNING, "regression": halves.REGRESSIONS, "several classes": several}
    document = {"draws": options.draws}
    with threadpool_limits(1):
        for kind, names in kinds.items():
            worths = {}
            for name in names:
                worths[name] = tried(kind, name, grid, options.draws)
                print(kind, name, flush=True)
            document[kind] = {
                f"{epsilon:g}": {left: chosen(worths, epsilon, left) for left in ("", *names)}
                for epsilon in EPSILONS
            }
            for epsilon in EPSILONS:
                print(kind, document[kind][f"{epsilon:g}"][""]["fixed"], flush=True)
    save(options.json, document)


if __name__ == "__main__":
    main()
