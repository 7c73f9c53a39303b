"""The Gaussian mechanism: profile, calibration, per-instance and ex-post loss (re-exports)."""

from expost.privacy.gaussian import (
    delta as delta,
    epsilon as epsilon,
    ex_post_bound as ex_post_bound,
    ex_post_loss as ex_post_loss,
    sigma as sigma,
)
