"""Ordered classes and times to an event: a model of each, and what it cost the people in the table.

Run it: python examples/gallery/rows.py rows.png
"""

import sys
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import expost

rng = np.random.default_rng(7)
age, smoker = rng.uniform(20, 80, 5000), rng.random(5000) < 0.3
columns, years = {"age": age, "smoker": smoker}, 10
# Invented: pain rises with age; a relapse comes sooner to smokers, and one in ten people leaves every year.
PAIN = ("none", "mild", "moderate", "severe")
steps = np.array([0.8, -0.4, -1.8])
pain = np.array(PAIN)[np.sum(0.05 * (age - 50) + rng.logistic(size=5000) > -steps[:, None], axis=0)]


def hazard(of_age, smokes):
    """The true probability of a relapse in a year."""
    return 1 / (1 + np.exp(2.6 - 0.02 * (of_age - 50) - 0.9 * smokes))


relapse, left = rng.geometric(hazard(age, smoker)), rng.geometric(0.1, 5000)
followed = np.minimum(np.minimum(relapse, left), years)
seen = (relapse <= left) & (relapse <= years)
outcomes = np.column_stack([followed, seen])

features = (expost.Number(name="age", low=20, high=80, unit="years"), expost.YesNo(name="smoker"))
of_pain = expost.Domain(features=features, label=expost.OrderedLabel(name="pain", classes=PAIN))
of_time = expost.Domain(
    features=features, label=expost.TimeLabel(name="years", event="relapse", periods=years, unit="years")
)
ordinal, survival = expost.OrdinalRegression(domain=of_pain), expost.SurvivalRegression(domain=of_time)
with tempfile.TemporaryDirectory() as folder:
    # Both fits are of the same people: an account counts what they cost together.
    account = expost.Ledger(f"{folder}/ledger.db").account("patients", epsilon=5, delta=1e-4)
    ordinal.fit(columns, pain, account=account)
    survival.fit(columns, outcomes, account=account)

# Colours that colour-blind people tell apart.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00")
figure, ((left_above, right_above), (left_below, right_below)) = plt.subplots(
    2, 2, figsize=(9, 6.4), layout="constrained"
)
ages = np.linspace(20, 80, 61)
shown = {"age": ages, "smoker": np.zeros(61, dtype=bool)}
above = 1 / (1 + np.exp(-(0.05 * (ages - 50) + steps[:, None])))
truth = -np.diff(np.vstack([np.ones(61), above, np.zeros(61)]), axis=0)
for name, chance, true, color in zip(PAIN, ordinal.predict_proba(shown).T, truth, COLORS, strict=True):
    left_above.plot(ages, chance, color=color, linewidth=2, label=name)
    left_above.plot(ages, true, "--", color=color, linewidth=1)
left_above.set(xlabel="age (years)", ylabel="probability of a pain score", xlim=(20, 80), ylim=(0, 1))

ends = np.arange(years + 1)
for name, smokes, color in (("does not smoke", False, COLORS[0]), ("smokes", True, COLORS[3])):
    curve = survival.predict_survival({"age": np.array([50.0]), "smoker": np.array([smokes])})[0]
    right_above.step(ends, [1, *curve], where="post", color=color, linewidth=2, label=name)
    true = (1 - hazard(50, smokes)) ** ends
    right_above.step(ends, true, "--", where="post", color=color, linewidth=1)
for panel in (left_above, right_above):
    panel.plot([], [], "--", color="#777777", linewidth=1, label="truth")
right_above.set(xlabel="time (years)", ylabel="share without a relapse, age 50", xlim=(0, years), ylim=(0, 1))
left_above.legend(
    frameon=False, loc="upper center", ncols=5, columnspacing=0.8, handlelength=1.1, fontsize="small"
)
right_above.legend(frameon=False, loc="lower left")

for panel, model, outcome in ((left_below, ordinal, pain), (right_below, survival, outcomes)):
    losses = np.abs(model.ex_post_losses(columns, outcome))
    panel.hist(losses, bins=np.linspace(0, 1, 41), color=COLORS[0], histtype="step", linewidth=1.5)
    panel.set(
        xlabel="loss of a person (promised: 1)", ylabel="people", yscale="log", xlim=(0, 1), ylim=(0.8, 6000)
    )
figure.savefig(sys.argv[1], dpi=150)
