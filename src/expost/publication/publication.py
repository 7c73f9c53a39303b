"""Publication: the verified public file of one fit; and what several of them cost a person together."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError, model_validator

from expost._common.files import atomic_write
from expost._common.strict_json import (
    INTACT,
    MAX_BYTES,
    check_readable,
    check_size,
    digest,
    error_of_validation,
    indented,
    publication_error,
    read_object,
)
from expost._common.summary import Summarized, Summary
from expost._common.typing import FloatArray
from expost._common.validation import LanguageName, Simultaneous, parameter_error
from expost.data.choices import chosen_cost
from expost.data.domain import Domain
from expost.data.labels import Label
from expost.data.weights import UNWEIGHTED, Weighting
from expost.exceptions import PublicationError
from expost.fitting.release import Release
from expost.losses import AnyLoss, describe
from expost.losses.registry import PUBLISHED, known_losses
from expost.page import render
from expost.publication.checks import verify
from expost.publication.document import as_json, content
from expost.publication.readings import ReadableDocument, encoded_for
from expost.publication.schema import check_format
from expost.reports.base import CONFIDENCE
from expost.reports.several import evaluate_several
from expost.reports.wallet import evaluate_wallet


class Publication(Summarized, ReadableDocument):
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
        outcome: Label | None = None,
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
            What is declared about the outcome but plain classes, where the fit was given no domain.

        Raises
        ------
        PublicationError
            If a reader could not understand it, or if its plan promises more than its scales certify.

        Privacy
        -------
        Public in, public out.
        """
        fields = content(release, classes, feature_names, domain, weighting, outcome)
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

    def to_json(self) -> str:
        """The file's text: indented JSON that ends in a newline, numbers by ``repr``, bit for bit."""
        return indented(as_json(self)) + "\n"

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the file whole or not at all; with ``overwrite=False``, only under a name that is free."""
        with atomic_write(Path(path), overwrite=overwrite) as file:
            file.write(self.to_json())

    def to_html(
        self, path: str | os.PathLike[str], *, overwrite: bool = True, language: LanguageName | None = None
    ) -> None:
        """Write the page on which a person reads what this cost her, as :meth:`save` writes the file.

        ``language`` is that of the page's own sentences, ``"en"``, ``"de"``, ``"fr"`` or ``"es"``; by default
        what the domain declares under ``[publication]``, or English.

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
        if Path(path).suffix.lower() == ".toml":
            raise publication_error("its name is that of a domain file", "give the file that a fit wrote")
        information = os.stat(path)
        if not stat.S_ISREG(information.st_mode):
            raise publication_error("it must be a regular file", "name the file itself")
        check_size(information.st_size)
        with open(path, "rb") as file:
            return cls.from_json(file.read(MAX_BYTES + 1), losses=losses)

    @model_validator(mode="after")
    def _verified(self) -> Self:
        """Nobody has a publication whose guarantee its own noise scales do not certify."""
        verify(self)
        return self

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
        return partial(Publication.from_json, losses=own), (self.to_json(),)

    def __repr__(self) -> str:
        return (
            f"Publication({'INSECURE, ' * (self.insecure is not None)}{describe(self.loss)['name']}, "
            f"{self.n_features} feature{'s' * (self.n_features != 1)}, {self._promise()}, "
            f"{'real arithmetic, ' * (self.precision is None)}report={self.plan.report!r})"
        )

    __str__ = __repr__

    def _summary(self) -> Summary:
        plan, promise = self.plan, self._promise()
        arithmetic = "real: rounding is not counted, because this loss states no error for its derivatives"
        if self.precision is not None:
            arithmetic = f"printed on a grid of {self.precision.grid:.3g}, and rounding is counted"
        rows = [
            ("guarantee", f"none; with secret noise {promise}" if self.insecure else promise),
            ("arithmetic", arithmetic),
            ("loss", str(self.loss)),
            ("features", f"{self.n_features}{self._intercepts()}"),
            ("rows", f"of norm ≤ {self.norm:g}{self._weights()}"),
            ("noise", f"sigma={plan.sigma:.6g}, l2={plan.l2:.6g}"),
            ("report", f"{plan.report}{', reduced Hessian' * bool(plan.reduced)}"),
            ("sha256", self.sha256),
        ]
        return Summary("Publication (public)", rows, alarm=self.insecure)

    def _intercepts(self) -> str:
        several = f" and {self.intercepts} intercepts, one for each row of a record"
        return several if self.intercepts > 1 else " and an intercept" * self.intercepts

    def _promise(self) -> str:
        if self.plan.epsilon is None:
            return "no worst case"
        whom = ", for each person with all of her rows" if self.of_people else ""
        chosen = chosen_cost(self.release.choices)
        whom += f", and epsilon={chosen:g} for ranges that were chosen" if chosen else ""
        return f"epsilon={self.plan.epsilon:g}, delta={self.plan.delta:g}{whom}"

    def _weights(self) -> str:
        largest, by_class = self.weighting.max_weight, self.weighting.class_weight
        text = "" if largest is None else f", sample weights ≤ {largest:g}"
        if by_class is not None:
            text += ", class weights " + ", ".join(f"{weight:g}" for weight in by_class)
        return text


def total(
    publications: Iterable[Publication],
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    confidence: float = CONFIDENCE,
    member: bool | None = None,
    simultaneous: Simultaneous = None,
) -> FloatArray:
    r"""A bound for each record on what several publications of one table cost it together.

    .. math:: \Bigl|\sum_i L_i\Bigr| \le \sum_i |t_{1,i}| + \frac{1}{2}\sum_i S_i^2
              + \sqrt{\sum_i S_i^2}\;\chi_n(1 - \rho)

    The losses add up, but their noises do not all point the same way: the root of the squares takes the
    place of the sum of :math:`k` bounds, each at a confidence of :math:`1 - \rho/k`
    (:func:`expost.reports.several.evaluate_several`; docs/mathematics.md, theorem 13.1). Assumes that the
    noise of each publication was drawn for it alone, and that the plans and their number were fixed in
    advance: the confidence is not that of a curator who decides by what came out whether to publish again.

    Parameters
    ----------
    publications
        Publications, each once.
    X, y
        Records in the units of the fits. Each publication takes its own columns of a frame.
    sample_weight
        Their weights, for publications that have any. Where none are given they are not known, and the bound
        holds whatever they were.
    groups
        Whose each row is, as in :meth:`expost.Publication.bounds`: bounds are then one for each person, in
        the order in which people first appear. They must be given where one of the publications promises to
        people. One that promises to rows answers for all rows of a group together, as for a family.
    confidence
        How sure to be of the sum; choose it before looking at any figure.
    member
        Whether the records were in the tables; ``None`` where that is unknown.
    simultaneous
        As in :meth:`expost.Publication.bounds`. With ``"all"`` the totals are added up, and so they are where
        one plan outweighs the others so much that this is less.

    Privacy
    -------
    Reads the publications and the record, and tells about that record only.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 500), np.array([1, 0] * 500)
    >>> model = expost.LogisticRegression(norm=1.0, classes=[0, 1])
    >>> three = [model.fit(X, y).publication_ for _ in range(3)]
    >>> added = sum(one.bounds(X[:1], y[:1], confidence=1 - 0.05 / 3).total for one in three)
    >>> bool(expost.total(three, X[:1], y[:1]) < added)
    True
    """
    given = _each_once(publications)
    return evaluate_several(
        [one.release for one in given],
        [encoded_for(one, X, y, sample_weight, groups) for one in given],
        confidence=confidence,
        member=member,
        simultaneous=simultaneous,
    )


def wallet(
    publications: Iterable[Publication],
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    confidence: float = CONFIDENCE,
    simultaneous: Simultaneous = None,
) -> FloatArray:
    r"""A bound for each member on how far publications have raised the odds that she is in the table.

    .. math:: \sum_i L_i \le \sum_i \tau_i + \frac{V}{2}
              + \sqrt{(V + v_0)\Bigl(2\log\frac{1}{\rho} + \log\frac{V + v_0}{v_0}\Bigr)}

    with :math:`V = \sum_i V_i` from the slopes and curvatures as they turned out, and for each publication
    either :math:`\tau_i = \log\det(I + \nabla^2\ell/\lambda)` and
    :math:`V_i = \|\nabla\ell\|^2/\sigma^2 + \Delta^2`, or :math:`\tau_i = 0` and
    :math:`\|\nabla^2\ell\|_F^2/\lambda^2` more in :math:`V_i`, whichever is less (docs/mathematics.md,
    theorem 18.1). It holds for all numbers of publications at once, whatever decides plans, questions and
    when to stop, as long as it decides from what was published: unlike :func:`expost.total`, which needs
    plans that were fixed in advance. From about five publications on it is the smaller of the two, or from
    more on for a record that they hardly move. Choose between them before reading either.

    Assumes that the record was in the table, and fixed before the first publication. It bounds one side only:
    how far the odds can have risen, not how far they can have fallen.

    Parameters
    ----------
    publications
        Publications, each once, the first one first: its plan decides :math:`v_0`, a sixteenth of the square
        of the largest shift that it allows.
    X, y
        Records in the units of the fits. Each publication takes its own columns of a frame.
    sample_weight
        Their weights, for publications that have any. Where none are given they are not known, and the bound
        holds whatever they were.
    confidence
        How sure to be, of all publications up to any time together; choose it before looking at any figure.
    simultaneous
        For how many records the bound is to hold at once; one by default.

    Privacy
    -------
    Reads the publications and the record, and tells about that record only.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 500), np.array([1, 0] * 500)
    >>> model = expost.LogisticRegression(epsilon=0.5, norm=1.0, classes=[0, 1])
    >>> twelve = [model.fit(X, y).publication_ for _ in range(12)]
    >>> bool(expost.wallet(twelve, X[:1], y[:1]) < expost.total(twelve, X[:1], y[:1], member=True))
    True
    """
    given = _each_once(publications)
    return evaluate_wallet(
        [one.release for one in given],
        [encoded_for(one, X, y, sample_weight) for one in given],
        confidence=confidence,
        simultaneous=simultaneous,
    )


def _each_once(publications: Iterable[Publication]) -> list[Publication]:
    """The publications, where they are such and none is there twice."""
    given = list(publications)
    if not given or not all(isinstance(one, Publication) for one in given):
        raise parameter_error(
            "publications", "one or more publications", [type(one).__name__ for one in given]
        )
    if len({one.sha256 for one in given}) < len(given):
        raise PublicationError("a publication is given twice, and would be counted twice. Give each once.")
    return given
