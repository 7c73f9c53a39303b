"""The tables on which models are compared, each with a declared domain and one split.

Bounds are round numbers from what the quantities are or from the table's documentation; none was computed
from the rows. What is not at hand is left out, and the caller is told why.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from expost import ClassLabel, Domain, Number, NumberLabel, YesNo
from papers import datasets
from papers.datasets import DataSet, DataUnavailable

EXAMPLES = Path(__file__).parent.parent / "examples"
Pair = tuple[DataSet, DataSet]
# Seven tenths of a small table for fitting; credit has four fifths, Adult its published parts.
SHARE, SEED = 0.7, 0
# The quantities of the diabetes data in the order of its columns.
DIABETES = {
    "age": (18.0, 90.0),
    "sex": (1.0, 2.0),
    "body mass index": (15.0, 50.0),
    "blood pressure": (50.0, 150.0),
    "total cholesterol": (80.0, 320.0),
    "LDL": (30.0, 250.0),
    "HDL": (10.0, 110.0),
    "cholesterol ratio": (1.0, 10.0),
    "log triglycerides": (3.0, 6.5),
    "glucose": (50.0, 130.0),
}
ELECTION = {
    "TVnews": (0.0, 7.0),
    "selfLR": (1.0, 7.0),
    "ClinLR": (1.0, 7.0),
    "DoleLR": (1.0, 7.0),
    "PID": (0.0, 6.0),
    "age": (18.0, 95.0),
    "educ": (1.0, 7.0),
    "income": (1.0, 24.0),
    "logpopul": (-2.5, 9.5),
}
MARRIAGE = {
    "rate_marriage": (1.0, 5.0),
    "age": (17.0, 45.0),
    "yrs_married": (0.0, 25.0),
    "children": (0.0, 6.0),
    "religious": (1.0, 4.0),
    "educ": (9.0, 20.0),
    "occupation": (1.0, 6.0),
    "occupation_husb": (1.0, 6.0),
}
HEALTH = {"lncoins": (0.0, 4.7), "lpi": (0.0, 7.5), "fmde": (0.0, 9.0), "disea": (0.0, 60.0)}
HEALTH_YES_NO = ("idp", "physlm", "hlthg", "hlthf", "hlthp")


def credit() -> Pair:
    """Default of credit card clients."""
    return datasets.credit().split(0.8, SEED)


def adult() -> Pair:
    """Census income, with the published parts for training and testing."""
    return datasets.adult("train"), datasets.adult("test")


def kidney() -> Pair:
    """Chronic kidney disease."""
    return datasets.kidney().split(SHARE, SEED)


def breast_cancer() -> Pair:
    """The Wisconsin breast-cancer data that scikit-learn ships."""
    bunch, file = load_breast_cancer(), EXAMPLES / "breast_cancer" / "domain.toml"
    domain = Domain.from_toml(file.read_text(encoding="utf-8"))
    names = [feature.name for feature in domain.features]
    return _table("breast cancer", domain, _columns(names, bunch.data), bunch.target_names[bunch.target])


def digits(first: int, second: int) -> Pair:
    """Two handwritten digits, 8 x 8 pixels from 0 to 16."""
    bunch = load_digits()
    chosen = np.isin(bunch.target, (first, second))
    names = [f"pixel {place}" for place in range(64)]
    label = ClassLabel(name="digit", classes=(str(first), str(second)))
    domain = Domain(features=_numbers(dict.fromkeys(names, (0.0, 16.0))), label=label)
    columns = _columns(names, bunch.data[chosen])
    return _table(f"digits {first}/{second}", domain, columns, bunch.target[chosen].astype(str))


def election() -> Pair:
    """Clinton or Dole in the American National Election Study of 1996, from statsmodels."""
    frame = _statsmodels("anes96")
    label = ClassLabel(name="vote", classes=("Clinton", "Dole"))
    outcome = np.where(frame["vote"] == 1.0, "Dole", "Clinton")
    return _table("election", Domain(features=_numbers(ELECTION), label=label), frame, outcome)


def affairs() -> Pair:
    """Whether a wife in a survey of 1974 had an affair (Fair 1978), from statsmodels."""
    frame = _statsmodels("fair")
    label = ClassLabel(name="affair", classes=("no", "yes"))
    outcome = np.where(frame["affairs"] > 0.0, "yes", "no")
    return _table("affairs", Domain(features=_numbers(MARRIAGE), label=label), frame, outcome)


def wine(part: str) -> Pair:
    """Wine quality, red or white."""
    return datasets.wine(part).split(SHARE, SEED)


def diabetes() -> Pair:
    """Progression of diabetes within a year (Efron et al. 2004), from 25 to 346 on a scale of their own."""
    bunch = load_diabetes(scaled=False)
    domain = Domain(features=_numbers(DIABETES), label=NumberLabel(name="progression", low=0.0, high=350.0))
    return _table("diabetes", domain, _columns(list(DIABETES), bunch.data), bunch.target)


def doctor_visits() -> Pair:
    """Visits to a doctor in a year, in the RAND health insurance experiment, from statsmodels."""
    frame = _statsmodels("randhie")
    features = (*_numbers(HEALTH), *(YesNo(name=name) for name in HEALTH_YES_NO))
    columns = {name: frame[name] for name in HEALTH} | {name: frame[name] > 0.5 for name in HEALTH_YES_NO}
    domain = Domain(features=features, label=NumberLabel(name="visits", low=0.0, high=52.0))
    return _table("doctor visits", domain, columns, frame["mdvis"])


TABLES: dict[str, Callable[[], Pair]] = {
    "credit": credit,
    "adult": adult,
    "kidney": kidney,
    "breast cancer": breast_cancer,
    "digits 3/8": lambda: digits(3, 8),
    "digits 1/7": lambda: digits(1, 7),
    "election": election,
    "affairs": affairs,
    "wine, red": lambda: wine("red"),
    "wine, white": lambda: wine("white"),
    "diabetes": diabetes,
    "doctor visits": doctor_visits,
}
# Neither today's defaults nor settings of gradient descent were chosen on these.
HELD_OUT = ("adult", "digits 1/7", "election", "wine, white", "doctor visits")


def _table(name, domain, columns, outcome) -> Pair:
    return DataSet(name=name, domain=domain, columns=columns, outcome=outcome).split(SHARE, SEED)


def _numbers(bounds: dict[str, tuple[float, float]]) -> tuple[Number, ...]:
    return tuple(Number(name=name, low=low, high=high) for name, (low, high) in bounds.items())


def _columns(names, data):
    return dict(zip(names, data.T, strict=True))


def _statsmodels(name: str) -> dict[str, np.ndarray]:
    """A table that statsmodels ships, as columns."""
    try:
        from statsmodels import datasets as bundled
    except ImportError:
        raise DataUnavailable(f"{name} comes with statsmodels, which is not installed.") from None
    frame = getattr(bundled, name).load_pandas().data
    return {column: frame[column].to_numpy(dtype=np.float64) for column in frame.columns}
