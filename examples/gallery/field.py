"""
A Gaussian field learnt from few observations
=============================================

A field that is smooth at some scale is a Gaussian process. By its precision, the inverse of its covariance, it is a sparse
matrix on a grid (Lindgren, Rue and Lindström, 2011), and what a fit needs of it are solutions, the logarithm of its
determinant with gradients, and the diagonal of its inverse. None of them makes a dense matrix.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import torch

import openwork as ow
from openwork import linalg

# %%
# The operator kappa^2 - Laplace on a grid of n x n points; the precision is tau times its square.
n = 40
line = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
L = ow.asarray(ow.kronsum(line, line, format="csr"), like="torch")
eye = ow.asarray(ow.eye(n * n, format="csr"), like="torch")


def precision(log_kappa, log_tau):
    K = L + eye * torch.exp(2 * log_kappa)
    return (K @ K) * torch.exp(log_tau)


# %%
# A field with a range of some ten points, seen at one point in eight with noise.
rng = np.random.default_rng(5)
true = torch.tensor([np.log(0.25), np.log(3.0)])
modes = linalg.factorized(L + eye * torch.exp(2 * true[0].double()), kind="cholesky")
noise = torch.from_numpy(rng.standard_normal(n * n))
field = modes(noise) * torch.exp(-true[1].double() / 2)
seen = torch.from_numpy(rng.random(n * n) < 1 / 8).double()
observed = seen * (field + 0.1 * torch.from_numpy(rng.standard_normal(n * n)))

# %%
# The logarithm of the evidence: two determinants and one solution. Factorisations keep their symbolic phase, and the
# gradient of a determinant is the selected inverse.
prior = posterior = None


def loss(log_kappa, log_tau, log_noise):
    global prior, posterior
    weight = torch.exp(-2 * log_noise)
    Q = precision(log_kappa, log_tau)
    P = Q + ow.diags_array([seen * weight], format="csr")
    if prior is None:
        prior, posterior = (linalg.factorized(m, kind="cholesky") for m in (Q, P))
    else:
        prior.update(Q), posterior.update(P)
    mean = posterior(weight * observed)
    fit = weight * (observed @ observed - observed @ mean)
    count = seen.sum() * 2 * log_noise
    return (posterior.logdet() - prior.logdet() + fit + count) / 2, mean


# %%
# Three numbers, fitted by L-BFGS.
theta = torch.tensor([-0.5, 0.0, -1.0], dtype=torch.float64, requires_grad=True)
optimiser = torch.optim.LBFGS([theta], max_iter=40, line_search_fn="strong_wolfe")
calls = 0


def closure():
    global calls
    calls += 1
    optimiser.zero_grad()
    value, _ = loss(*theta)
    value.backward()
    return value


optimiser.step(closure)
kappa, tau, sigma = theta.detach().exp().tolist()
print(
    f"{calls} evaluations; kappa {kappa:.2f} (0.25), tau {tau:.2f} (3), noise {sigma:.3f} (0.1)"
)
with torch.no_grad():
    _, mean = loss(*theta)
deviation = posterior.inverse_diagonal().sqrt()
inside = (mean - field).abs() < 2 * deviation
print(
    f"{100 * inside.double().mean():.0f} % of the field is within two standard deviations"
)

# %%
# One value with its gradient, and the same by torch's dense factorisation.


def dense(log_kappa, log_tau, log_noise):
    K = L.to_dense() + torch.exp(2 * log_kappa) * torch.eye(n * n, dtype=torch.float64)
    Q = torch.exp(log_tau) * (K @ K)
    P = Q + torch.diag(seen * torch.exp(-2 * log_noise))
    down = torch.linalg.cholesky(P)
    mean = torch.cholesky_solve((torch.exp(-2 * log_noise) * observed)[:, None], down)[
        :, 0
    ]
    fit = torch.exp(-2 * log_noise) * (observed @ observed - observed @ mean)
    logs = [2 * torch.linalg.cholesky(m).diagonal().log().sum() for m in (P, Q)]
    return (logs[0] - logs[1] + fit + seen.sum() * 2 * log_noise) / 2


def timed(f):
    point = theta.detach().clone().requires_grad_()
    start = time.perf_counter()
    value = f(*point)
    value = value[0] if isinstance(value, tuple) else value
    value.backward()
    return value.item(), point.grad, 1e3 * (time.perf_counter() - start)


ours, theirs = timed(loss), timed(dense)
assert np.isclose(ours[0], theirs[0])
assert torch.allclose(ours[1], theirs[1], atol=1e-3)
print(f"  openwork, sparse {ours[2]:8.0f} ms\n  torch, dense     {theirs[2]:8.0f} ms")

# %%
figure, axes = plt.subplots(1, 4, figsize=(11, 3.0))
shown = np.where(seen.numpy() > 0, observed.numpy(), np.nan)
limit = float(field.abs().max())
for ax, title, values in zip(
    axes,
    ("field", "observations", "posterior mean", "its deviation"),
    (field, shown, mean, deviation),
    strict=True,
):
    scale = (
        {"cmap": "viridis"}
        if "deviation" in title
        else {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    )
    ax.imshow(np.asarray(values).reshape(n, n), **scale)
    ax.set_title(title)
    ax.set_axis_off()
plt.show()

# sphinx_gallery_thumbnail_path = "../examples/gallery/pictures/field.png"
