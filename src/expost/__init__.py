"""What did this model cost me? Private generalised linear models, and every person's exact privacy loss."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any as _Any

if TYPE_CHECKING:
    from expost import (
        audit as audit,
        budgets as budgets,
        exceptions as exceptions,
        gaussian as gaussian,
        goe as goe,
        research as research,
    )
    from expost.data.dates import Date as Date, Month as Month, Weekday as Weekday
    from expost.data.dialect import Dialect as Dialect
    from expost.data.domain import Domain as Domain
    from expost.data.features import (
        Category as Category,
        Interaction as Interaction,
        Number as Number,
        YesNo as YesNo,
    )
    from expost.data.labels import (
        AmountLabel as AmountLabel,
        ClassLabel as ClassLabel,
        CountLabel as CountLabel,
        NumberLabel as NumberLabel,
        OrderedLabel as OrderedLabel,
        TimeLabel as TimeLabel,
    )
    from expost.data.tables import scan as scan
    from expost.data.texts import Contact as Contact, PublicationTexts as PublicationTexts
    from expost.estimators import (
        ConvexModel as ConvexModel,
        GammaRegression as GammaRegression,
        GeneralizedLinearModel as GeneralizedLinearModel,
        LinearRegression as LinearRegression,
        LogisticRegression as LogisticRegression,
        OrdinalRegression as OrdinalRegression,
        PoissonRegression as PoissonRegression,
        QuantileRegression as QuantileRegression,
        SmoothedHingeClassifier as SmoothedHingeClassifier,
        SurvivalRegression as SurvivalRegression,
    )
    from expost.fitting.choose import choose as choose
    from expost.ledger import Ledger as Ledger
    from expost.losses import (
        BoundedGamma as BoundedGamma,
        BoundedPoisson as BoundedPoisson,
        ConvexLoss as ConvexLoss,
        DerivativeCurve as DerivativeCurve,
        LabelSet as LabelSet,
        LipschitzPoisson as LipschitzPoisson,
        LocationScale as LocationScale,
        LogisticLoss as LogisticLoss,
        Loss as Loss,
        PseudoHuber as PseudoHuber,
        RecordBall as RecordBall,
        RecordBox as RecordBox,
        SmoothedHinge as SmoothedHinge,
        SmoothedNorm as SmoothedNorm,
        SmoothedPinball as SmoothedPinball,
        SoftmaxLoss as SoftmaxLoss,
        SquaredLoss as SquaredLoss,
        VectorLoss as VectorLoss,
        check_convex_loss as check_convex_loss,
        check_loss as check_loss,
    )
    from expost.privacy.calibration import calibrate as calibrate, calibrate_convex as calibrate_convex
    from expost.privacy.choices import ChoicePlan as ChoicePlan
    from expost.privacy.composition import compose as compose
    from expost.privacy.plan import Plan as Plan
    from expost.publication import Publication as Publication, total as total, wallet as wallet

    __version__: str

# Where the public names live; see above for mypy and editors. A name is imported when it is first asked for
# (PEP 562), so that importing the package costs next to nothing.
_MODULES = ("audit", "budgets", "exceptions", "gaussian", "goe", "research")
_NAMES = {
    "data.dates": "Date Month Weekday",
    "data.dialect": "Dialect",
    "data.domain": "Domain",
    "data.features": "Category Interaction Number YesNo",
    "data.labels": "AmountLabel ClassLabel CountLabel NumberLabel OrderedLabel TimeLabel",
    "data.tables": "scan",
    "data.texts": "Contact PublicationTexts",
    "estimators": "ConvexModel GammaRegression GeneralizedLinearModel LinearRegression LogisticRegression "
    "OrdinalRegression PoissonRegression QuantileRegression SmoothedHingeClassifier "
    "SurvivalRegression",
    "fitting.choose": "choose",
    "ledger": "Ledger",
    "losses": "BoundedGamma BoundedPoisson ConvexLoss DerivativeCurve LabelSet LipschitzPoisson "
    "LocationScale LogisticLoss Loss PseudoHuber RecordBall RecordBox SmoothedHinge "
    "SmoothedNorm SmoothedPinball SoftmaxLoss SquaredLoss VectorLoss check_convex_loss check_loss",
    "privacy.calibration": "calibrate calibrate_convex",
    "privacy.choices": "ChoicePlan",
    "privacy.composition": "compose",
    "privacy.plan": "Plan",
    "publication": "Publication total wallet",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> _Any:
    """Import a public name when it is first asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version("expost")
    if name in _MODULES:
        return _import_module(f"expost.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'expost' has no attribute {name!r}")
    thing = getattr(_import_module(f"expost.{_HOMES[name]}"), name)
    globals()[name] = thing  # found directly from now on
    return thing


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*_MODULES, *_HOMES, "__version__"])
