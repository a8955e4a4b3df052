"""Ridge regressions of one number, the penalty by evidence, from sums over rows.

With basis z_i, numbers t_i (standardised) and weights w_i,

    minimise  sum_i w_i (t_i - a - b z_i)^2 + λ |b|^2,

of which λ has the largest evidence: the penalty read as a Gaussian prior of b, and the
variance of the noise profiled out,

    log p(t | λ) = -n/2 log RSS(λ) - 1/2 log det(1 + G/λ) + constant,

where G is the Gram matrix of the centred basis and RSS(λ) the minimum above. Where there
are more terms than rows, the same is done with the matrix of products of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve

from sensortree.types import Array

# Penalties that are compared: the weight of the rows divided by powers of 3.
POWERS = np.arange(0, 15)
# Terms, or rows if these are fewer, up to which the evidence is worked out; else the
# penalty is so much of the weight of the rows.
EVIDENT, SHARE = 1_200, 1e-3


@dataclass(frozen=True, eq=False)
class Sums:
    """Weighted sums over some rows: all that a ridge regression of few terms needs.

    Attributes
    ----------
    gram : ndarray of shape (n_terms + 1, n_terms + 1)
        Of the basis, whose last term is 1.
    moment : ndarray of shape (n_terms + 1,)
        Of the basis with the numbers.
    square : float
        Of the numbers with themselves.
    """

    gram: Array
    moment: Array
    square: float

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.gram + other.gram,
            self.moment + other.moment,
            self.square + other.square,
        )

    def __sub__(self, other: Sums) -> Sums:
        return Sums(
            self.gram - other.gram,
            self.moment - other.moment,
            self.square - other.square,
        )

    @property
    def weight(self) -> float:
        """Weight of the rows."""
        return float(self.gram[-1, -1])

    @property
    def centred(self) -> tuple[Array, Array, float]:
        """Gram matrix, moment and square about the means."""
        mean, weight = self.gram[-1, :-1] / self.weight, self.weight
        gram = self.gram[:-1, :-1] - weight * np.outer(mean, mean)
        moment = self.moment[:-1] - mean * self.moment[-1]
        return gram, moment, self.square - float(self.moment[-1]) ** 2 / weight

    def solve(self, penalty: float) -> tuple[Array, float]:
        """Slopes and intercept."""
        gram, moment, _ = self.centred
        gram.flat[:: len(gram) + 1] += penalty
        coef = solve(gram, moment, assume_a="pos") if len(moment) else moment
        return coef, float(self.moment[-1] - self.gram[-1, :-1] @ coef) / self.weight


def sums_of(terms: Array, numbers: Array, weight: Array) -> Sums:
    """Sums over rows, given their basis with ones at the end, (n_terms + 1, n_rows)."""
    weighted = terms * weight
    moment = weighted @ numbers
    return Sums(weighted @ terms.T, moment, float(weight @ numbers**2))


def most_evident(spectrum: Array, unexplained: Array, weight: float) -> float:
    """The penalty of the largest evidence.

    Parameters
    ----------
    spectrum : ndarray of shape (n,)
        Eigenvalues of the Gram matrix, or of the products of rows.
    unexplained : ndarray of shape (n_penalties,)
        The minimum, RSS(λ), at each of the penalties.
    weight : float
        Of the rows.
    """
    penalties = weight / 3.0**POWERS
    inside = np.log1p(np.maximum(spectrum, 0.0)[:, None] / penalties).sum(axis=0)
    left = np.maximum(unexplained / weight, 1e-12)
    return float(penalties[np.argmax(-0.5 * weight * np.log(left) - 0.5 * inside)])


def freedom_of(spectrum: Array, penalty: float) -> float:
    """Degrees of freedom of the regression, without the intercept."""
    known = np.maximum(spectrum, 0.0)
    return float((known / (known + penalty)).sum())


@dataclass(frozen=True, eq=False)
class Ridge:
    """A ridge regression of standardised numbers.

    Attributes
    ----------
    coef : ndarray of shape (n_terms,)
    intercept : float
    penalty : float
    freedom : float
        Degrees of freedom, the intercept's too.
    """

    coef: Array
    intercept: float
    penalty: float
    freedom: float


def fit_sums(sums: Sums) -> tuple[Ridge, Array]:
    """The regression of the largest evidence by its sums, and the spectrum."""
    gram, moment, square = sums.centred
    if not len(moment):
        return Ridge(moment, *_mean(sums), sums.weight, 1.0), moment
    if len(moment) > EVIDENT:
        penalty, spectrum = SHARE * sums.weight, np.diag(gram)
    else:
        spectrum, vectors = eigh(gram)
        along = vectors.T @ moment
        penalties = sums.weight / 3.0**POWERS
        known = np.maximum(spectrum, 0.0)[:, None] + penalties
        penalty = most_evident(
            spectrum, square - (along[:, None] ** 2 / known).sum(axis=0), sums.weight
        )
    return (
        Ridge(*sums.solve(penalty), penalty, 1 + freedom_of(spectrum, penalty)),
        spectrum,
    )


def _mean(sums: Sums) -> tuple[float]:
    return (float(sums.moment[-1]) / sums.weight,)


def fit_rows(
    terms: Array, numbers: Array, weight: Array, penalty: float | None = None
) -> Ridge:
    """The regression of the largest evidence, or of a given penalty, of a few rows.

    Parameters
    ----------
    terms : ndarray of shape (n_terms + 1, n_rows)
        The last is 1.
    numbers, weight : ndarray of shape (n_rows,)
    penalty : float, default=None
    """
    total, root = float(weight.sum()), np.sqrt(weight)
    mean = terms[:-1] @ weight / total
    middle = float(weight @ numbers) / total
    basis = (terms[:-1] - mean[:, None]) * root
    centred = (numbers - middle) * root
    products = basis.T @ basis
    if penalty is None and len(products) > EVIDENT:
        penalty = SHARE * total
    if penalty is None:
        spectrum, vectors = eigh(products)
        along = vectors.T @ centred
        shrunk = 1 + np.maximum(spectrum, 0.0)[:, None] / (total / 3.0**POWERS)
        penalty = most_evident(
            spectrum, (along[:, None] ** 2 / shrunk).sum(axis=0), total
        )
    products.flat[:: len(products) + 1] += penalty
    inverse = solve(products, np.column_stack([centred, np.eye(len(products))]))
    coef = basis @ inverse[:, 0]
    freedom = 1 + len(products) - penalty * float(np.trace(inverse[:, 1:]))
    return Ridge(coef, middle - float(mean @ coef), penalty, freedom)
