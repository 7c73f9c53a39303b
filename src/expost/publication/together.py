"""What several publications cost a person together."""

from collections.abc import Iterable
from typing import Any

from expost._common.typing import FloatArray
from expost._common.validation import Simultaneous, parameter_error
from expost.data.encoding import Encoded
from expost.exceptions import PublicationError
from expost.publication.publication import Publication
from expost.publication.readings import encoded_records
from expost.reports.base import CONFIDENCE
from expost.reports.several import evaluate_several


def total(
    publications: Iterable[Publication],
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    confidence: float = CONFIDENCE,
    member: bool | None = None,
    simultaneous: Simultaneous = None,
) -> FloatArray:
    r"""A bound on what several publications of one table cost each record together.

    .. math:: \Bigl|\sum_i L_i\Bigr| \le \sum_i |t_{1,i}| + \frac{1}{2}\sum_i S_i^2
              + \sqrt{\sum_i S_i^2}\;\chi_n(1 - \rho)

    The losses add up, but their noises do not all point the same way: the root of the squares takes the
    place of the sum of :math:`k` bounds, each at a confidence of :math:`1 - \rho/k`
    (:func:`expost.reports.several.evaluate_several`; docs/mathematics.md, section 13). Assumes that the
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
    confidence
        How sure to be of the sum; choose it before looking at any figure.
    member
        Whether the records were in the tables; ``None`` where that is unknown.
    simultaneous
        As in :meth:`expost.Publication.bounds`. With ``"all"`` the totals are added up, and so they are where
        one plan outweighs the others so much that this is less.

    Returns
    -------
    FloatArray
        One bound for each record.

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
    given = list(publications)
    if not given or not all(isinstance(one, Publication) for one in given):
        raise parameter_error(
            "publications", "one or more publications", [type(one).__name__ for one in given]
        )
    if len({one.sha256 for one in given}) < len(given):
        raise PublicationError("a publication is given twice, and would be counted twice. Give each once.")
    return evaluate_several(
        [one.release for one in given],
        [encoded_for(one, X, y, sample_weight) for one in given],
        confidence=confidence,
        member=member,
        simultaneous=simultaneous,
    )


def encoded_for(publication: Publication, X: Any, y: Any = None, sample_weight: Any = None) -> Encoded:
    """Records as a publication's mechanism saw them; their weights count where it declares any."""
    weighted = publication.weighting.max_weight is not None
    return encoded_records(publication, X, y, sample_weight if weighted else None)
