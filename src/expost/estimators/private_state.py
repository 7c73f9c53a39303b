"""What an estimator keeps in memory and never gives away, and what it keeps if a fit is refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import BaseEstimator

from expost.exceptions import PrivateStateError
from expost.fitting.private_fit import PrivateFit


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
