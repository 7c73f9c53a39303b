"""Free tuning on the test set: the best settings of a grid, which a real user could not know."""

from dataclasses import asdict
from itertools import product

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
