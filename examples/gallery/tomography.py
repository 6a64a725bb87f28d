"""
Looking inside: an image from its shadows
=========================================

A scanner sends rays through a body and measures what each loses. Every ray is a row of a sparse matrix: how
long it is in each pixel. The image is the solution in the sense of least squares, of fewer rays than there
are pixels.
"""

import matplotlib.pyplot as plt
import numpy as np

import openwork as ow
from openwork import linalg

# %%
# Sixty directions, ninety rays each. A ray is followed in small steps; steps in the same pixel are
# repeated coordinates, and these mean their sum.
n, directions, rays = 80, 60, 90
angle = np.repeat(np.arange(directions) * np.pi / directions, rays)[:, None]
offset = np.tile(np.linspace(-0.7, 0.7, rays), directions)[:, None]
step = np.linspace(-0.71, 0.71, 3 * n)[None, :]
x = 0.5 + offset * np.cos(angle) - step * np.sin(angle)
y = 0.5 + offset * np.sin(angle) + step * np.cos(angle)
hit = (x >= 0) & (x < 1) & (y >= 0) & (y < 1)
pixel = (y * n).astype(int) * n + (x * n).astype(int)
ray = np.broadcast_to(np.arange(len(angle))[:, None], hit.shape)
lengths = np.full(hit.sum(), step[0, 1] - step[0, 0])
R = ow.sparse_coo_tensor(
    np.stack([ray[hit], pixel[hit]]), lengths, (directions * rays, n * n)
).asformat("csr")
print(f"{R.shape[0]} rays, {R.shape[1]} pixels, {R.density:.2%} of the matrix is not 0")

# %%
# A body of three ellipses, its shadows with noise, and the image from these.
r, c = np.mgrid[:n, :n] / n - 0.5
body = np.where((c / 0.36) ** 2 + (r / 0.45) ** 2 < 1, 1.0, 0.0)
body -= 0.6 * (((c - 0.14) / 0.09) ** 2 + ((r - 0.05) / 0.2) ** 2 < 1)
body += 0.7 * (((c + 0.15) / 0.1) ** 2 + ((r + 0.1) / 0.12) ** 2 < 1)
shadow = R @ body.ravel()
shadow += np.random.default_rng(0).normal(0, 0.005, len(shadow))
image = linalg.lsqr(R, shadow, damp=0.02, atol=1e-2, btol=1e-2)[0].reshape(n, n)
error = np.linalg.norm(image - body) / np.linalg.norm(body)
assert error < 0.3
print(f"error {error:.0%}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(9, 3))
pictures = {"body": body, "shadows": shadow.reshape(directions, rays).T, "image": image}
for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(
        picture,
        cmap="gray",
        aspect="auto",
        vmin=0 if title != "shadows" else None,
        vmax=1.7 if title != "shadows" else None,
    )
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
