"""Publication: the verified public file of one fit."""

import os
import stat
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from pydantic import ValidationError

from expost._common.files import atomic_write
from expost._common.strict_json import (
    INTACT,
    MAX_BYTES,
    check_readable,
    check_size,
    digest,
    indented,
    publication_error,
    read_object,
)
from expost._common.summary import Summary
from expost._common.validation import LanguageName
from expost.data.domain import Domain
from expost.data.features import NumberLabel
from expost.data.weights import UNWEIGHTED, Weighting
from expost.exceptions import PublicationError
from expost.fitting.release import Release
from expost.losses import AnyLoss, describe
from expost.losses.registry import PUBLISHED, known_losses
from expost.page import render
from expost.publication.document import PublishedDocument, content, restored
from expost.publication.readings import Readings
from expost.publication.schema import PublishedPlan, PublishedPrecision, check_format, error_of_validation

if TYPE_CHECKING:
    from rich.table import Table


class Shown(Protocol):
    """What is shown of a publication."""

    @property
    def loss(self) -> AnyLoss:
        """The loss."""

    @property
    def plan(self) -> PublishedPlan:
        """The noise scales and the guarantee."""

    @property
    def precision(self) -> PublishedPrecision | None:
        """How the numbers were printed; None in real arithmetic."""

    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def norm(self) -> float:
        """The largest norm of a row."""

    @property
    def fit_intercept(self) -> bool:
        """Whether there is an intercept."""

    @property
    def weighting(self) -> Weighting:
        """What was declared about weights."""

    @property
    def insecure(self) -> str | None:
        """The sentence that voids the guarantee, where one does."""

    @property
    def sha256(self) -> str:
        """The fingerprint of the file."""


def one_line(publication: Shown) -> str:
    """The publication's repr."""
    count = publication.n_features
    return (
        f"Publication({'INSECURE, ' if publication.insecure else ''}{describe(publication.loss)['name']}, "
        f"{count} feature{'s' * (count != 1)}, {promise(publication.plan)}, "
        f"{'real arithmetic, ' if publication.precision is None else ''}report={publication.plan.report!r})"
    )


def promise(plan: PublishedPlan) -> str:
    """The guarantee in a few words."""
    if plan.epsilon is None:
        return "no worst case"
    return f"epsilon={plan.epsilon:g}, delta={plan.delta:g}"


def overview(publication: Shown) -> Summary:
    """The publication as a table, for a terminal and for a notebook."""
    stated = promise(publication.plan)
    rows = [
        ("guarantee", f"none; with secret noise {stated}" if publication.insecure else stated),
        ("arithmetic", _arithmetic(publication.precision)),
        ("loss", str(publication.loss)),
        ("features", f"{publication.n_features}{' and an intercept' * publication.fit_intercept}"),
        ("rows", f"of norm ≤ {publication.norm:g}{_weights(publication.weighting)}"),
        ("noise", f"sigma={publication.plan.sigma:.6g}, l2={publication.plan.l2:.6g}"),
        ("report", f"{publication.plan.report}{', reduced Hessian' * bool(publication.plan.reduced)}"),
        ("sha256", publication.sha256),
    ]
    return Summary("Publication (public)", rows, alarm=publication.insecure)


def _arithmetic(precision: PublishedPrecision | None) -> str:
    """What the guarantee is for: the numbers as they are printed, or real numbers."""
    if precision is None:
        return "real: rounding is not counted, because this loss states no error for its derivatives"
    return f"printed on a grid of {precision.grid:.3g}, and rounding is counted"


def _weights(weighting: Weighting) -> str:
    parts = []
    if weighting.max_weight is not None:
        parts.append(f"sample weights ≤ {weighting.max_weight:g}")
    if weighting.class_weight is not None:
        parts.append("class weights " + ", ".join(f"{weight:g}" for weight in weighting.class_weight))
    return "".join(f", {part}" for part in parts)


class Publication(Readings, PublishedDocument):
    """Everything public about one fit: the model, its guarantee, and what was published with it.

    Made by :meth:`from_release`, or read by :meth:`load`; ``docs/publication.md`` explains every field.

    Privacy
    -------
    Public. It depends on the table only through the coefficients and the statistics, whose noise the plan
    accounts for: there is no count of rows or iterations, no training loss, no time of day. Reading one
    verifies that its noise scales certify the guarantee that it states.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 500), np.array([1, 0] * 500)
    >>> publication = expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(X, y).publication_
    >>> publication
    Publication(logistic, 2 features, epsilon=1, delta=1e-06, report='independent')
    >>> expost.Publication.from_json(publication.to_json()) == publication
    True
    """

    @classmethod
    def from_release(
        cls,
        release: Release,
        *,
        classes: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
        domain: Domain | None = None,
        weighting: Weighting = UNWEIGHTED,
        outcome: NumberLabel | None = None,
    ) -> Self:
        """Make the publication of a release.

        Parameters
        ----------
        release
            What :func:`expost.fitting.mechanism.perturb` released.
        classes
            The labels in the order of the loss's own, which are the default where it has a list of them.
        feature_names
            The names of the features, without the intercept.
        domain
            What is publicly known about a record, where the fit was given one.
        weighting
            What was declared about weights.
        outcome
            The declared bounds of a numeric outcome, where the fit was given no domain.

        Raises
        ------
        PublicationError
            If a reader could not understand it, or if its plan promises more than its scales certify.

        Privacy
        -------
        Public in, public out.
        """
        fields = {"software": f"expost {version('expost')}"} | content(
            release,
            classes=classes,
            feature_names=feature_names,
            domain=domain,
            weighting=weighting,
            outcome=outcome,
        )
        try:
            fingerprint = digest(fields)
        except (TypeError, ValueError):
            raise PublicationError(
                "`classes` must be texts, finite numbers or booleans to be published; recode the labels."
            ) from None
        try:
            own = known_losses([type(release.plan.loss)])
            publication = cls._examined(fields | {"sha256": fingerprint}, own)
            check_readable(publication.to_json())
            return publication
        except PublicationError as error:
            reason = str(error).replace("use this publication", "publish this release")
            raise PublicationError(reason.replace(INTACT, "declare it otherwise before fitting")) from None

    @cached_property
    def release(self) -> Release:
        """What was published, as arrays and library objects."""
        return restored(
            loss=self.loss,
            regularizer=self.regularizer,
            norm=self.norm,
            fit_intercept=self.fit_intercept,
            coefficients=self.coefficients,
            plan=self.plan,
            precision=self.precision,
            statistics=self.statistics,
            insecure=self.insecure is not None,
            max_weight=self.weighting.largest,
        )

    def to_json(self) -> str:
        """The file's text: indented JSON that ends in a newline, numbers by ``repr``, bit for bit."""
        return indented(self._document()) + "\n"

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the file whole or not at all; with ``overwrite=False``, only under a name that is free."""
        with atomic_write(Path(path), overwrite=overwrite) as file:
            file.write(self.to_json())

    def to_html(
        self, path: str | os.PathLike[str], *, overwrite: bool = True, language: LanguageName = "en"
    ) -> None:
        """Write the page on which a person reads what this cost her, as :meth:`save` writes the file.

        ``language`` is that of the page's own sentences: ``"en"`` or ``"de"``.

        Privacy
        -------
        Public: it holds what the file holds, and quantities derived from that. See ``docs/page.md``.
        """
        with atomic_write(Path(path), overwrite=overwrite) as file:
            file.write(render([self], language=language))

    @classmethod
    def from_json(cls, text: str | bytes, *, losses: Sequence[type[AnyLoss]] = ()) -> Self:
        """Read a publication, and trust nothing that it says before it is verified.

        Parameters
        ----------
        text
            The content of the file.
        losses
            The classes of losses of the curator's own: a file names its loss and states its parameters, and
            only who has the formula can read it. The loss is checked as :func:`expost.check_loss` does.

        Raises
        ------
        PublicationError
            In one sentence, if the text is not a publication of this format, was damaged, or states a
            guarantee that its noise scales do not certify.

        Privacy
        -------
        Public in, public out. The hash finds damage; it is no signature, and whoever can change the
        coefficients can compute it anew.
        """
        return cls._examined(read_object(text), known_losses(losses))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, losses: Sequence[type[AnyLoss]] = ()) -> Self:
        """Read a publication from a file of at most 128 MiB; see :meth:`from_json`."""
        information = os.stat(path)
        if not stat.S_ISREG(information.st_mode):
            raise publication_error("it must be a regular file", "name the file itself")
        check_size(information.st_size)
        with open(path, "rb") as file:
            return cls.from_json(file.read(MAX_BYTES + 1), losses=losses)

    @classmethod
    def _examined(cls, document: dict[str, Any], known: Mapping[str, type[AnyLoss]]) -> Self:
        """The publication that a document describes, or the sentence that refuses it."""
        check_format(document.get("format"))
        try:
            return cls.model_validate(document, context=known)
        except ValidationError as error:
            raise error_of_validation(error) from None

    def __eq__(self, other: object) -> bool:
        return self.sha256 == other.sha256 if isinstance(other, Publication) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle holds the file's text and nothing else, and is verified like any other file. A loss of the
        # curator's own is named by its class.
        own = () if type(self.loss) in PUBLISHED.values() else (type(self.loss),)
        return partial(Publication.from_json, losses=own) if own else Publication.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        return one_line(self)

    __str__ = __repr__

    def __rich__(self) -> "Table":
        return overview(self).terminal()

    def _repr_html_(self) -> str:
        return overview(self).html()
