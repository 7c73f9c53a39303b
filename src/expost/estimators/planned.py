"""What all estimators share: arguments, a given plan, the entry of what is spent, and exact losses."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, overload

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from expost._common.namespaces import namespace_of
from expost._common.progress import Step, shown_steps
from expost._common.typing import FloatArray
from expost._common.validation import UnitName, check_count, parameter_error, warn_caller
from expost.data.choices import RangeChoice, check_unit
from expost.data.domain import Domain
from expost.data.encoding import Encoded
from expost.data.labels import Label
from expost.data.ranges import choice_losses
from expost.data.tables import as_lazy
from expost.exceptions import (
    DomainError,
    LedgerError,
    LedgerWarning,
    ParameterError,
    PrivateStateError,
    UncountedWarning,
)
from expost.fitting.choose import noted_choices
from expost.fitting.ex_post import LossTerms, streamed_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source
from expost.fitting.private_fit import PrivateFit
from expost.fitting.release import Release
from expost.ledger import Noted, check_account
from expost.losses.corners import Corners
from expost.privacy.plan import Plan
from expost.privacy.sharing import shared_plan

# The estimators that this process has fitted without an account, and the one fit of each that warns of it.
_UNCOUNTED: set[str] = set()
_WARNED: dict[str, "Spending"] = {}


# What fits each kind of outcome that a domain declares.
_FITTING = {
    "classes": "LogisticRegression",
    "number": "LinearRegression or QuantileRegression",
    "count": "PoissonRegression",
    "amount": "GammaRegression",
    "ordered": "OrdinalRegression",
    "time": "SurvivalRegression",
}


def label_error(wanted: str, label: Label) -> ParameterError:
    """The error for a domain whose outcome is of another kind than is fitted; the caller raises it."""
    return ParameterError(
        f"`domain` must be one whose label has {wanted}; got a label of kind={label.kind!r}: take "
        f"{_FITTING[label.kind]}."
    )


@dataclass(eq=False)
class Spending:
    """The entry of one fit, from the check of its plan to the hash of its publication.

    Made before the table is touched: the entry has the time of that. The name of the estimator is the entry's
    note where the account has none.
    """

    estimator: str
    account: Any
    insecure: bool
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    choices: tuple[RangeChoice, ...] = ()
    """Ranges of the domain that were chosen from the table: each is counted once."""
    promised_to: str | None = None
    """Whom the fit promises to, where that is not its plan's unit."""
    number: int | None = None

    def __post_init__(self) -> None:
        if self.account is not None:
            check_account(self.account)

    def check(self, plan: Plan) -> None:
        """Refuse a plan that would overdraw the account, or warn of a second fit without one."""
        if self.choices:
            check_unit(self.choices, plan.unit)
        if self.account is not None:
            self.account.check(*self._noted(plan))
        elif self.estimator in _UNCOUNTED and _WARNED.setdefault(self.estimator, self) is self:
            warn_caller(
                f"this process fits {self.estimator} once more and nobody counts what that spends: every fit "
                "spends its budget again. Give all fits of one table the same account: "
                "fit(..., account=account), with an account of expost.Ledger.",
                UncountedWarning,
            )

    def enter(self, plan: Plan) -> None:
        """Enter the plan as spent, or remember the fit without an account, just before noise is drawn."""
        if self.account is None:
            _UNCOUNTED.add(self.estimator)
        else:
            self.number = self.account.enter_all(self._noted(plan), began=self.began)[-1]

    def _noted(self, plan: Plan) -> list[Noted]:
        fitted = Noted(self.estimator, plan, insecure=self.insecure, unit=self.promised_to)
        return [*noted_choices(self.choices, self.promised_to), fitted]

    def finish(self, sha256: str | None) -> None:
        """Mark the entry as finished; the fit is spent and published whether or not this succeeds."""
        if self.account is None or self.number is None:
            return
        try:
            self.account.finish(self.number, sha256=sha256)
        except LedgerError as error:
            warn_caller(f"the fit is counted, but its entry stays unfinished: {error}", LedgerWarning)


def check_people(plan: Plan, groups: Any) -> None:
    """Refuse a fit for people without their ids, and ids for a fit that makes no promise to people."""
    if plan.unit == "person" and groups is None:
        raise ParameterError(
            "`groups` must be given with unit='person': the id of the person whose each row is, a name of a "
            "column with files, or `person` in the domain."
        )
    if plan.unit == "row" and groups is not None:
        raise ParameterError(
            "`groups` must be left out of a fit with unit='row', whose promise is to each row. Declare "
            "unit='person' for a promise to each person."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator that spends one plan on one release, and keeps the private part of it in memory.

    Estimators are dataclasses: scikit-learn reads their arguments from the ``__init__`` that is made for
    them, and nothing is checked before a fit. All fitted attributes are public except the private part,
    which exact losses are computed from; it is dropped on pickling and copying.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    l2: float | None = None
    l1: float | Literal["auto"] = 0.0
    coef_bounds: Any = None
    unit: UnitName = "row"
    rows_per_person: int | None = None
    models: int = 1
    plan: Plan | None = None
    random_state: Any = None
    verbose: bool = False

    _losses: ClassVar[tuple[type, ...]]
    """The losses that a plan may have been made for."""
    _of_plan: ClassVar[tuple[str, ...]] = ("epsilon", "delta", "l2", "unit")
    _promised_to: ClassVar[str | None] = None
    """Whom all models of a kind promise to, where that is not the unit of their plans."""
    """The arguments that a plan decides."""
    _of_loss: ClassVar[tuple[str, ...]] = ()
    """The arguments that the loss of a plan decides."""

    _had_weights = False
    """Whether the records of the fit had weights of their own."""

    @abstractmethod
    def _records(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Encoded:
        """Records with their labels, weights and people, encoded as those of the fit were."""

    @overload
    def ex_post_losses(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        member: Any = True,
        return_terms: Literal[False] = False,
    ) -> FloatArray: ...
    @overload
    def ex_post_losses(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        member: Any = True,
        return_terms: Literal[True],
    ) -> LossTerms: ...
    def ex_post_losses(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        member: Any = True,
        return_terms: bool = False,
    ) -> FloatArray | LossTerms:
        """Exact privacy loss of each record, or of each person, at what was released.

        Parameters
        ----------
        X, y
            Records in the units of the fit, or files with them, as there.
        sample_weight
            Their weights in the fit; needed where it had any. Declared class weights are counted anyway.
        groups
            Whose each row is, as in the fit: losses are then one for each person, in the order in which
            people first appear. With ``unit="row"`` they are those of families: all records of one group
            together. With ``unit="person"`` they must be given, or be the domain's.
        member
            Whether the records were in the table that was fitted. Passing ``True`` for a record that
            was not is a mistake that cannot be detected, and gives a meaningless figure. With ``groups``, of
            a table in memory, it may be one truth value for each row: the loss is then that of a change in
            which those rows of a group leave for whom it is true, and the others enter. With
            ``unit="person"`` these are all rows that she has, and all that she would have instead.
        return_terms
            Return the three signed terms (:class:`~expost.fitting.ex_post.LossTerms`), not their size.

        Privacy
        -------
        The result is private: it may never be published, nor told to the person it is about, because it is
        computed from everyone's records. Nor may it decide anything that is published later, such as who
        stays in the table (docs/mathematics.md, section 18).
        """
        check_is_fitted(self)
        private = self._private_part()
        if self._had_weights and sample_weight is None:
            raise DomainError("`sample_weight` must be given, because the fit had weights: those of the fit.")
        records = self._records(X, y, sample_weight, groups)
        if self.plan_.unit == "person":
            check_people(self.plan_, records.people)
        parts = streamed_terms(private, records, self.plan_.loss, member=member)
        domain = getattr(self, "domain", None)
        if domain is not None and domain.choices:
            terms = replace(LossTerms.joined(parts), choices=self._of_choices(X, domain, member, groups))
            return terms if return_terms else terms.loss
        if return_terms:
            return LossTerms.joined(parts)
        losses = [terms.loss for terms in parts]
        everyone: FloatArray = namespace_of(losses[0]).concat(losses)
        return everyone

    def _of_choices(self, X: Any, domain: Domain, member: Any, groups: Any) -> FloatArray:
        """What ranges that were chosen from the table cost each member, or each family of members."""
        if member is not True:
            raise ParameterError(
                "`member` must be True where ranges of the domain were chosen from the table: what that cost "
                "is known of its members only."
            )
        whose = domain.person if groups is None else groups
        people: Any = {"person": whose, "rows_per_person": domain.rows_per_person}
        table = X if (lazy := as_lazy(X, domain)) is None else lazy
        return choice_losses(table, domain.choices, dialect=domain.table, **people)

    def _given_plan(self) -> Plan | None:
        """The plan that was given, if one was; refused where it is not for this model or says otherwise."""
        plan = self.plan
        if plan is None:
            return None
        if not isinstance(plan, Plan):
            raise parameter_error("plan", "None or a Plan of `expost.calibrate`", type(plan).__name__)
        if not isinstance(plan.loss, self._losses):
            wanted = " or ".join(kind.__name__ for kind in self._losses)
            raise ParameterError(
                f"`plan` must be made for {wanted}, which {type(self).__name__} fits; this one is for "
                f"{type(plan.loss).__name__}."
            )
        if self.models != 1:
            raise parameter_error("models", "1 with a plan, which is that of each", self.models)
        self._check_agreement(plan)
        if math.isfinite(plan.epsilon) and not plan.delta_at(plan.epsilon) <= plan.delta * (1.0 + 1e-9):
            raise ParameterError(
                f"`plan` must certify what it states; its noise does not give epsilon={plan.epsilon:g} at "
                f"delta={plan.delta:g}. Make it with `expost.calibrate`."
            )
        return plan

    def _shared_plan(self, plan: Callable[[Any], Any]) -> Any:
        """The plan of each of the models that share the budget; ``plan`` makes that of an estimator."""
        if check_count("models", self.models) == 1:
            return plan(self)

        def planned(epsilon: float, delta: float) -> Any:
            one = copy(self)
            one.epsilon, one.delta = epsilon, delta
            return plan(one)

        return shared_plan(self.models, self.epsilon, self.delta, planned)

    def _check_agreement(self, plan: Plan) -> None:
        """Refuse arguments that say otherwise than the plan that is given with them."""
        usual = {argument.name: argument.default for argument in fields(self)}
        decided = {name: getattr(plan, name) for name in self._of_plan}
        decided |= {name: getattr(plan.loss, name, None) for name in self._of_loss}
        for name, value in decided.items():
            given = getattr(self, name)
            if name == "loss" and isinstance(given, str):
                value = getattr(value, "name", None)
            if given not in (usual[name], value):
                wanted = f"left out with a plan, which has {name}={value!r}"
                raise parameter_error(name, wanted, given)
        if "fit_intercept" in decided and self.fit_intercept != plan.fit_intercept:
            raise ParameterError(
                f"`plan` must be made with fit_intercept={self.fit_intercept!r}, as {type(self).__name__} "
                f"is; this one has fit_intercept={plan.fit_intercept!r}. Say the same in both."
            )

    def _release(
        self,
        plan: Plan,
        records: Encoded,
        spending: Spending,
        step: Step,
        corners: Corners | None = None,
    ) -> Release:
        """Spend the plan, and store everything but the coefficients, whose shape is the estimator's."""
        release, self._private = perturb(
            plan,
            records,
            corners=corners,
            noise=noise_source(self.random_state),
            step=step,
            before_noise=lambda: spending.enter(plan),
        )
        self.plan_ = release.plan
        self.insecure_ = release.insecure or any(one.insecure for one in spending.choices)
        return release

    @contextmanager
    def _spending(self, account: Any) -> Iterator[tuple[Spending, Step]]:
        """One fit; if it is refused, the model that was there stays, with its own classes and names."""
        before = self.__dict__.copy()
        try:
            with shown_steps(bool(self.verbose)) as step:
                step("Planning")
                domain = getattr(self, "domain", None)
                if not isinstance(domain, Domain | None):
                    way_out = "Read a domain file with expost.Domain.load."
                    raise parameter_error("domain", "an expost.Domain", domain, way_out)
                chosen = () if domain is None else domain.choices
                insecure = self.random_state is not None
                told: Any = {"insecure": insecure, "choices": chosen, "promised_to": self._promised_to}
                yield Spending(type(self).__name__, account, **told), step
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
