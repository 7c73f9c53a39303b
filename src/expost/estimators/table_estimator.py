"""How an estimator opens its tables, and what it keeps in memory and never gives away."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.columns import split_columns
from expost.data.domain import Domain
from expost.data.encoding import Encoded, check_column_names, encode_lazy, encode_rows, with_labels
from expost.data.features import NumberLabel
from expost.data.lazy import LazyTable
from expost.data.open_lazy import as_lazy, with_columns
from expost.data.placed import table_of
from expost.data.weights import Weighting
from expost.exceptions import DomainError, PrivateStateError
from expost.fitting.private_fit import PrivateFit
from expost.privacy.plan import Plan


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator whose private part is dropped on pickling and copying.

    All other fitted attributes are public.
    """

    @contextmanager
    def _kept_on_failure(self) -> Iterator[None]:
        """If a fit is refused, keep the model that was there as it was, with its own classes and names."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _private_part(self) -> PrivateFit:
        private: PrivateFit | None = getattr(self, "_private", None)
        if private is None:
            raise PrivateStateError(
                "exact losses need the private part of the fit, which is dropped when an estimator is "
                "pickled or copied; call `ex_post_losses` on the fitted object itself, in the same process."
            )
        return private

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_private", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "plan_")


class TableEstimator(PrivateEstimator):
    """An estimator whose records come with a domain, or as numbers with or without names."""

    domain: Domain | None
    plan_: Plan
    n_features_in_: int
    _labels: NDArray[Any] | None
    """The classes in the order of the loss's labels."""
    _outcome: NumberLabel | None
    """The declared bounds of a numeric outcome, where there is no domain."""
    _weighting: Weighting
    _had_weights: bool
    """Whether the records of the fit had weights of their own."""

    def _encode_rows(self, X: Any) -> Encoded:
        lazy = as_lazy(X, self.domain)
        if lazy is not None:
            names = getattr(self, "feature_names_in_", None)
            return encode_rows(
                lazy, self.plan_, domain=self.domain, n_features=self._width, feature_names=names
            )
        rows = encode_rows(X, self.plan_, domain=self.domain)
        if self.domain is None:  # refuses columns that are not those of the fit
            validate_data(self, table_of(X), reset=False, skip_check_array=True)
        return rows

    @property
    def _width(self) -> int:
        """The number of encoded columns."""
        return self.n_features_in_ if self.domain is None else len(self.domain.column_names)

    def _records(self, X: Any, y: Any, sample_weight: Any, weighting: Weighting) -> Encoded:
        """Records with their labels and weights, encoded as those of the fit were."""
        X, y, sample_weight = with_columns(X, y, sample_weight, self.domain)
        lazy = as_lazy(X, self.domain)
        if lazy is None:
            return self._with_labels(self._encode_rows(X), y, self.plan_, sample_weight, weighting)
        return self._from_lazy(lazy, y, self.plan_, sample_weight, weighting)

    def _with_labels(
        self, rows: Encoded, y: Any, plan: Plan, sample_weight: Any, weighting: Weighting
    ) -> Encoded:
        return with_labels(
            rows,
            y,
            plan,
            classes=self._labels,
            domain=self.domain,
            weighting=weighting,
            sample_weight=sample_weight,
            outcome=self._outcome,
        )

    def _no_labels(self) -> FloatArray:
        """In the place of labels that were not read yet: classes must be declared."""
        if self.domain is None and getattr(self, "classes", ()) is None:
            raise parameter_error("classes", "declared for files and Dask frames", None, "Or use a domain.")
        return np.empty(0)

    def _set_columns(self, lazy: LazyTable, y: Any, sample_weight: Any) -> None:
        """Store the names of the columns, which must be numbers where no domain says what they are."""
        check_column_names(y, sample_weight)
        if self.domain is not None:
            return
        if not lazy.has_types:
            raise DomainError("CSV files have texts only; declare what they mean with `domain`.")
        names, _ = split_columns(lazy, None, labelled=True, label=y, weight=sample_weight)
        for name in names:
            if lazy.kinds.get(name) == "category":
                raise DomainError(
                    f"the column {name!r} must hold numbers where no domain is declared. Encode it, leave it "
                    "out, or declare a domain."
                )
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)

    def _from_lazy(
        self, lazy: LazyTable, y: Any, plan: Plan, sample_weight: Any, weighting: Weighting
    ) -> Encoded:
        return encode_lazy(
            lazy,
            y,
            plan,
            classes=self._labels,
            domain=self.domain,
            n_features=self._width,
            feature_names=None if self.domain is not None else getattr(self, "feature_names_in_", None),
            weighting=weighting,
            sample_weight=sample_weight,
            outcome=self._outcome,
        )

    def _column_names(self) -> Sequence[str] | None:
        names: Sequence[str] | None = getattr(self, "feature_names_in_", None)
        return names if self.domain is None else self.domain.column_names
