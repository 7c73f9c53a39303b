"""Show why an exact privacy loss must stay secret: a single one reveals a protected count.

This is the example "The privacy risk of exposing ex-post pDP" of Redberg and Wang (NeurIPS 2021). A count Q
is released as o = Q + N(0, σ²). Someone who knows that she was not counted is told her exact ex-post loss,

    loss = |o − Q − ½| / σ²,

because counting her would have made it Q + 1. She solves for Q = o − ½ ± σ²·loss. The other solution is
2o − 1 − Q. It is a whole number only if 2o is, which has probability zero. (The paper's text takes o = 1,
where both are; its footnote takes o = 0.1.) The noise protects nothing.

Run it: python examples/exposed_loss.py
"""

import numpy as np

from expost import gaussian


def release_count(count: int, *, sigma: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the noisy count, which is public, and the exact loss of someone not counted, which is not.

    Privacy
    -------
    The first number is the output of the Gaussian mechanism. The second is computed from the count itself;
    giving it to anyone is the mistake that this example shows. Do not use a seeded generator for a real
    release.
    """
    output = count + sigma * rng.standard_normal()
    loss = gaussian.ex_post_loss(output, mean=count, other_mean=count + 1, sigma=sigma)
    return output, float(loss)


def recover_count(output: float, loss: float, *, sigma: float) -> int:
    """Compute the count from what the attacker knows: the release, her loss and the public scale."""
    candidates = output - 0.5 + sigma**2 * loss * np.array([-1.0, 1.0])
    wholeness = np.abs(candidates - np.round(candidates))
    return int(np.round(candidates[np.argmin(wholeness)]))


def main() -> None:
    """Run the attack on one count."""
    count, sigma = 317, 10.0
    worst = float(gaussian.epsilon(1e-6, sensitivity=1.0, sigma=sigma))
    output, loss = release_count(count, sigma=sigma, rng=np.random.default_rng(2021))
    below, above = output - 0.5 - sigma**2 * loss, output - 0.5 + sigma**2 * loss
    print(f"The count is {count}. It is released with noise of standard deviation {sigma:g}: {output:.6f}.")
    print(
        f"That is ({worst:.3f}, 1e-6)-differentially private, uncertain by ±{2 * sigma:g} (two deviations)."
    )
    print(f"Someone who was not counted is told her exact ex-post loss: {loss:.9f}.")
    print(f"She solves for the count: {below:.6f} or {above:.6f}.")
    print(f"Only one is a whole number. The count is {recover_count(output, loss, sigma=sigma)}.")


if __name__ == "__main__":
    main()
