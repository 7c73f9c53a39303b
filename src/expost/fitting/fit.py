"""One fit, from a plan and encoded records to a release and its private part."""

from collections.abc import Callable
from typing import Any

from expost._common.progress import Step, silent
from expost._common.validation import parameter_error
from expost.data.encoded import Encoded
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source
from expost.fitting.private_fit import PrivateFit
from expost.fitting.release import Release
from expost.losses import Regularizer
from expost.privacy.plan import Plan


def fit(
    plan: Plan,
    records: Encoded,
    *,
    regularizer: Regularizer | None = None,
    random_state: Any = None,
    step: Step = silent,
    before_noise: Callable[[], None] | None = None,
) -> tuple[Release, PrivateFit]:
    """Fit a model to records as the plan says, and release it.

    The estimators and the command line both come through here.

    Parameters
    ----------
    plan
        Every noise scale, from :func:`expost.calibrate`.
    records
        The table, from :func:`expost.data.encoding.encode_records`.
    regularizer
        A public function of the coefficients that is added to the objective.
    random_state
        None for exact noise from the operating system. A seed is for tests and makes the release INSECURE.
    step
        Is told what is being done, for a display of progress.
    before_noise
        Is called once everything was checked, just before noise is drawn; what it raises stops the fit.

    Privacy
    -------
    Spends ``plan.epsilon`` at ``plan.delta``, once. The release is public, the other part is private.
    Arguments are checked before any noise is drawn.
    """
    if regularizer is not None and not isinstance(regularizer, Regularizer):
        raise parameter_error("regularizer", "a Regularizer or None", regularizer)
    noise = noise_source(random_state)
    return perturb(plan, records, noise=noise, regularizer=regularizer, step=step, before_noise=before_noise)
