"""The base class of the estimators: fitting, the publication, and exact losses afterwards."""

import math
from abc import abstractmethod
from typing import Any, Literal, Self, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from expost._common.namespaces import namespace_of
from expost._common.progress import shown_steps
from expost._common.typing import FloatArray
from expost.data.design import Design
from expost.data.encoding import Encoded, open_source
from expost.data.open_lazy import as_lazy, with_columns
from expost.data.placed import space_of, table_of
from expost.data.weights import Weighting
from expost.estimators.planned import PlannedEstimator, Spending
from expost.exceptions import DomainError, PublicationError
from expost.fitting.ex_post import LossTerms, ex_post_terms, streamed_terms
from expost.fitting.mechanism import fit
from expost.fitting.prediction import class_coefficients, linear_predictor, scored
from expost.ledger import Account
from expost.losses import Regularizer
from expost.losses.registry import can_be_published
from expost.privacy.plan import Plan
from expost.publication import Publication
from expost.publication.rehearsal import rehearse


class PrivateGLM(PlannedEstimator):
    """A generalised linear model released by objective perturbation.

    All fitted attributes are public except one: the private part that exact losses are computed from. It is
    dropped on pickling and copying.
    """

    regularizer: Regularizer | None
    random_state: Any
    verbose: bool

    @abstractmethod
    def _set_label(self, y: Any) -> None:
        """Store what is declared about the outcome, or the classes of ``y``, if there are any."""

    @abstractmethod
    def _set_coefficients(self, weights: FloatArray, intercepts: FloatArray) -> None:
        """Store the released coefficients, one row or one row per class, in scikit-learn's shapes."""

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, account: Account | None = None
    ) -> Self:
        """Release a model of ``y`` given ``X``.

        Parameters
        ----------
        X
            Rows of numbers: an array of any real type and order, a torch, CuPy or other array of the array
            API standard, which stays on its device (docs/gpu.md), a sparse matrix or array of SciPy's, or a
            pandas, polars or pyarrow frame. A sparse table is never made dense as a whole. Rows longer than
            ``norm`` are scaled down to it. Or a table in files: the path of a CSV or Parquet file or of a
            folder of them, a pattern, or what :func:`expost.scan` returns. Files may be larger than memory;
            CSV needs a domain. Or a Dask DataFrame, whose partitions are read where they are.
        y
            One label per row. With a domain and a frame it may be left out: the labels are then those of the
            column that the domain declares. With files or a Dask frame, the name of the outcome's column: by
            default the one that the domain declares, or the last. With a Dask frame also a Dask Series of as
            many rows in each partition; rows are paired by their places, whatever the index.
        sample_weight
            One weight per row, from 0 to ``max_weight``, by which its loss is multiplied: a part of the
            record, as private as the rest of it. By default 1. With files, the name of its column.
        account
            Where to count what this spends: an account of :class:`expost.Ledger`. The fit is entered before
            its noise is drawn, and refused with :class:`expost.exceptions.BudgetError` if it would
            overdraw.

        Privacy
        -------
        Spends ``plan_.epsilon`` at ``plan_.delta``, each time it is called. What is stored is public, except
        for the private part, which never leaves memory.
        """
        with self._kept_on_failure(), shown_steps(bool(self.verbose)) as step:
            # All checks come before any noise is drawn.
            step("Planning")
            spending = Spending(type(self).__name__, account, insecure=self.random_state is not None)
            weighting = self._declared_weighting(sample_weight)
            self._labels, self._outcome, self._had_weights = None, None, sample_weight is not None
            X, y, sample_weight = with_columns(X, y, sample_weight, self.domain)
            lazy = as_lazy(X, self.domain)
            self._set_label(y if lazy is None else self._no_labels())  # their number decides the loss
            self._weighting = self._class_weighting(weighting)
            if lazy is None:
                opened = open_source(X, self.domain)  # the number of columns is public
                plan = self._make_plan(weighting.largest, opened.n_features)
                design = Design(opened.n_features, plan.norm, plan.fit_intercept)
                rows = Encoded(opened, design, device=space_of(X))
                records = self._with_labels(rows, y, plan, sample_weight, self._weighting)
                if self.domain is None:
                    validate_data(self, table_of(X), reset=True, skip_check_array=True)
            else:
                self._set_columns(lazy, y, sample_weight)
                plan = self._make_plan(weighting.largest, self._width)
                records = self._from_lazy(lazy, y, plan, sample_weight, self._weighting)
            spending.check(plan)
            if self.domain is not None:
                self.feature_names_in_ = np.array([part.name for part in self.domain.features], dtype=object)
                self.n_features_in_ = len(self.feature_names_in_)
            declared: dict[str, Any] = {
                "classes": self._labels,
                "feature_names": self._column_names(),
                "domain": self.domain,
                "weighting": self._weighting,
                "outcome": self._outcome,
            }
            if can_be_published(plan.loss, self.regularizer) and _has_promise(plan):
                rehearse(plan, self._width, regularizer=self.regularizer, **declared)
            release, private = fit(
                plan,
                records,
                regularizer=self.regularizer,
                random_state=self.random_state,
                step=step,
                before_noise=lambda: spending.enter(plan),
            )
            table = class_coefficients(release.coefficients, plan.loss)
            intercepts = table[:, -1].copy() if plan.fit_intercept else np.zeros(len(table))
            self._set_coefficients(table[:, : self._width].copy(), intercepts)
            self.plan_ = release.plan
            self.insecure_ = release.insecure
            self._private = private
            step("Verifying the publication")
            try:
                self._publication: Publication | str = Publication.from_release(release, **declared)
            except PublicationError as error:
                # The budget is spent, so keep the model. Store only the message: errors refer to the rows.
                self._publication = str(error)
            spending.finish(None if isinstance(self._publication, str) else self._publication.sha256)
        return self

    @property
    def publication_(self) -> Publication:
        """Everything public about the fit, ready to save.

        Raises
        ------
        PublicationError
            If a reader could not understand it, for instance with the user's own regulariser.

        Privacy
        -------
        Public; the budget of ``plan_`` covers it.
        """
        check_is_fitted(self)
        if isinstance(self._publication, str):
            raise PublicationError(self._publication)
        return self._publication

    @property
    def ex_post_error_(self) -> float:
        """The order of the error of :meth:`ex_post_losses`; see :attr:`PrivateFit.loss_error`.

        Privacy
        -------
        Private: it grows with the table.
        """
        check_is_fitted(self)
        return self._private_part().loss_error

    @overload
    def ex_post_losses(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        member: bool = True,
        return_terms: Literal[False] = False,
    ) -> FloatArray: ...
    @overload
    def ex_post_losses(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        member: bool = True,
        return_terms: Literal[True],
    ) -> LossTerms: ...
    def ex_post_losses(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        member: bool = True,
        return_terms: bool = False,
    ) -> FloatArray | LossTerms:
        """Exact privacy loss of each record at the coefficients that were released.

        Parameters
        ----------
        X, y
            Records in the units of the fit, or files with them, as there.
        sample_weight
            Their weights in the fit; needed where it had any. Declared class weights are counted anyway.
        member
            Whether the records were in the table that was fitted. Passing ``True`` for a record that
            was not is a mistake that cannot be detected, and gives a meaningless figure.
        return_terms
            Return the three signed terms (:class:`~expost.fitting.ex_post.LossTerms`), not their size.

        Privacy
        -------
        The result is private: it may never be published, nor told to the person it is about, because it is
        computed from everyone's records.
        """
        check_is_fitted(self)
        private = self._private_part()
        if self._had_weights and sample_weight is None:
            raise DomainError("`sample_weight` must be given, because the fit had weights: those of the fit.")
        records = self._records(X, y, sample_weight, self._weighting)
        if return_terms:
            return ex_post_terms(private, records, self.plan_.loss, member=member)
        parts = streamed_terms(private, records, self.plan_.loss, member=member)
        losses = [terms.loss for terms in parts]
        everyone: FloatArray = namespace_of(losses[0]).concat(losses)
        return everyone

    def _linear_predictor(self, X: Any) -> FloatArray:
        """The linear predictor of each record, scaled into the ball as the table was."""
        check_is_fitted(self)
        return linear_predictor(self._encode_rows(X), self._coefficients())

    def _scored(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Linear predictors, labels on the loss's scale, and sample weights; from whatever ``fit`` takes."""
        check_is_fitted(self)
        records = self._records(X, y, sample_weight, Weighting(max_weight=math.inf))
        return scored(records, self._coefficients())

    def _coefficients(self) -> FloatArray:
        """One column for each class, or a vector; with the intercept last."""
        theta = np.atleast_2d(self.coef_)
        if self.plan_.fit_intercept:
            theta = np.column_stack([theta, np.ravel(self.intercept_)])
        return theta.T if len(theta) > 1 else theta[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _has_promise(plan: Plan) -> bool:
    """Whether there is anything to publish: noise scales of one's own may be too small for any epsilon."""
    return math.isfinite(plan.epsilon) or math.isinf(plan.loss.curve.max_slope)
