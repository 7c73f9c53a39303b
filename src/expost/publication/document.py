"""The document that is published: its fields, and what must hold among them."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from expost._common.models import FrozenModel
from expost._common.strict_json import digest, publication_error
from expost.data.domain import Domain
from expost.data.features import Label, NumberLabel
from expost.data.weights import UNWEIGHTED, Weighting
from expost.publication.checks import (
    check_classes,
    check_domain,
    check_guarantee,
    check_outcome,
    check_precision,
    check_shapes,
    check_statistics,
    check_weights,
)
from expost.publication.schema import PublishedPlan, PublishedPrecision, PublishedWeights, Statistics
from expost.publication.serialize import INSECURE
from expost.publication.values import (
    Classes,
    FeatureNames,
    Positive,
    PublishedLoss,
    PublishedRegularizer,
    choice,
    numbers,
)


class PublishedDocument(FrozenModel):
    """What the file says, verified: nobody has one whose guarantee its own noise scales do not certify.

    Privacy
    -------
    Public in, public out.
    """

    format: Literal["expost-publication/2"]
    software: Annotated[str, Field(pattern=r"\Aexpost [0-9A-Za-z.+!-]{1,60}\z")]
    loss: PublishedLoss
    regularizer: PublishedRegularizer | None
    norm: Positive
    fit_intercept: bool
    classes: Classes
    feature_names: FeatureNames
    coefficients: Annotated[tuple[float, ...], numbers("coefficients")]
    domain: Domain | None
    plan: PublishedPlan
    precision: PublishedPrecision | None
    weights: PublishedWeights | None = None
    outcome: NumberLabel | None = None
    statistics: Statistics
    insecure: Annotated[str, choice("insecure", (INSECURE,))] | None
    sha256: Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]

    @property
    def weighting(self) -> Weighting:
        """What was declared about weights; every record counts once where the file says nothing."""
        return UNWEIGHTED if self.weights is None else self.weights.value

    @property
    def label(self) -> Label | None:
        """What was declared about the outcome: by the domain, or bounds alone."""
        return self.outcome if self.domain is None else self.domain.label

    @property
    def n_features(self) -> int:
        """The number of features of a record, without the intercept."""
        return len(self.coefficients) // self.loss.outputs - self.fit_intercept

    def _document(self) -> dict[str, Any]:
        """The fields as JSON's types; a field that was added to the format is left out where it is null."""
        absent: dict[str, Any] = {} if self.plan.reduced else {"plan": {"reduced"}}
        absent |= {name: True for name in ("weights", "outcome") if getattr(self, name) is None}
        return self.model_dump(exclude=absent)

    @model_validator(mode="after")
    def _verified(self) -> Self:
        """Refuse fields that do not belong together, the cheap checks first."""
        others = {name: field for name, field in self._document().items() if name != "sha256"}
        if digest(others) != self.sha256:
            raise publication_error(
                "`sha256` must be that of the other fields but is not: something was changed"
            )
        check_shapes(
            self.coefficients,
            self.statistics,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            feature_names=self.feature_names,
            reduced=bool(self.plan.reduced),
        )
        check_classes(self.loss, self.classes)
        check_weights(self.weights, self.loss, self.classes)
        check_domain(self.domain, self.feature_names, norm=self.norm, classes=self.classes)
        check_outcome(self.outcome, self.domain, loss=self.loss)
        check_statistics(self.plan, self.statistics, self.loss)
        check_precision(self.precision, self.plan, self.coefficients, self.statistics, loss=self.loss)
        check_guarantee(
            self.loss,
            self.plan,
            self.precision,
            norm=self.norm,
            fit_intercept=self.fit_intercept,
            max_weight=self.weighting.largest,
        )
        return self
