"""Several visits of one person: what a promise to each row, and one to each person, really cost her.

The table is invented, so its exact losses may be shown. Those of a real table are for the curator alone.

Run it: python examples/gallery/visits.py visits.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import expost

random = np.random.default_rng(7)
patients = np.repeat(np.arange(400), random.integers(1, 13, 400))
age = random.uniform(20, 80, 400)[patients]
pressure = np.clip(random.normal(130, 15, 400)[patients] + random.normal(0, 8, len(patients)), 80, 200)
ill = random.random(len(patients)) < 1 / (1 + np.exp(-0.05 * (age - 50) - 0.03 * (pressure - 130)))
features = expost.Number(name="age", low=20, high=80), expost.Number(name="pressure", low=80, high=200)
label = expost.ClassLabel(name="ill", classes=(False, True))
visits = {"patient": patients, "age": age, "pressure": pressure, "ill": ill}
by_row = expost.LogisticRegression(domain=expost.Domain(features=features, label=label)).fit(visits)
by_person = expost.LogisticRegression(domain=expost.Domain(features=features, label=label, person="patient"))
by_person.fit(visits)

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
rows = np.bincount(patients)  # patients are numbered as they appear
for model, shift, colour, whom in ((by_row, -0.12, "#999999", "row"), (by_person, 0.12, "#0072B2", "person")):
    losses = model.ex_post_losses(visits, groups=patients)
    axes.scatter(rows + shift, losses, s=10, color=colour, label=f"ε = 1 for each {whom}")
axes.axhline(1.0, color="#D55E00", linewidth=2)
axes.set(xlabel="visits of a patient", ylabel="exact loss of all of them (log-odds)", xticks=range(1, 13))
axes.legend(frameon=False)
figure.savefig(sys.argv[1], dpi=150)
