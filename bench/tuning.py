"""Settings of DP-GD: the best of a grid on the test set, which nobody could know, or chosen elsewhere."""

import json
from dataclasses import asdict
from itertools import product

from bench.rivals import Descent
from bench.saving import RESULTS

# What `bench.fixed` chose on tables of choice.
CHOSEN = RESULTS / "settings.json"

# All settings are tried on a quarter of the draws, and the best of them on all.
FEWER, FINALISTS = 4, 3


def tuned(score, families, draws, goals):
    """The median scores of the settings that are best on the test set, at every epsilon, by family.

    All settings are tried on a few draws. The best of them are tried on as many draws as the other models
    have, and the best on these is reported, once for every goal: a finalist of one goal or family may win
    another.

    Parameters
    ----------
    score
        Median scores of settings over a number of draws: ``score(settings, draws)[setting][figure]``.
    families
        The settings of each family; a setting has an epsilon.
    draws
        How many draws the other models have.
    goals
        For each figure to tune for, whether large or small is good, as 1 or -1, and the figures to show.
    """
    tried = score({setting for family in families.values() for setting in family}, draws // FEWER)

    def ranked(settings, scored, goal):
        return sorted(settings, key=lambda setting: -goals[goal][0] * scored[setting][goal])

    epsilons = sorted({setting.epsilon for setting in tried})
    cases = list(product(families, epsilons, goals))

    def candidates(name, epsilon, settings):
        return [setting for setting in families[name] if setting in settings and setting.epsilon == epsilon]

    finalists = {
        setting
        for name, epsilon, goal in cases
        for setting in ranked(candidates(name, epsilon, tried), tried, goal)[:FINALISTS]
    }
    final = score(finalists, draws)
    results = {name: {epsilon: {} for epsilon in epsilons} for name in families}
    for name, epsilon, goal in cases:
        winner = ranked(candidates(name, epsilon, final), final, goal)[0]
        results[name][epsilon] |= {figure: final[winner][figure] for figure in goals[goal][1]}
        results[name][epsilon][f"{goal}_setting"] = asdict(winner)
    return results


def elsewhere(kind, table, epsilon):
    """The one setting that is best on all tables of choice but this one, and those that are best on one."""
    found = json.loads(CHOSEN.read_text(encoding="utf-8"))[kind][f"{epsilon:g}"]
    found = found.get(table, found[""])
    return Descent(**found["fixed"]), [Descent(**setting) for setting in found["few"]]


def only(wanted, groups):
    """Measure the groups of models of which one is wanted, or all: ``groups[models]()[model]``."""
    results = {}
    for models, measure in groups.items():
        if wanted is None or wanted.intersection(models):
            results |= measure()
    return results
