"""
Attention that looks only where it has to
=========================================

Each position of a long text looks at its neighbours and at a few positions that everybody looks at. The mask
is a sparse tensor. `attend` computes scores where the mask has elements, and nowhere else.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import openwork as ow
from openwork.nn import attend

# %%
# The mask: a band, and a block in sixteen that all see, in blocks of 16 by 16.
length, block = 512, 16
place = np.arange(length // block)
near = abs(place[:, None] - place[None, :]) <= 1
wide = (place[:, None] % 16 == 0) | (place[None, :] % 16 == 0)
dense = np.kron(near | wide, np.ones((block, block), np.float32))
mask = ow.asarray(torch.as_tensor(dense)).asformat(f"bsr({block}, {block})")
print(f"{mask.nse} of {length**2} scores, {mask.density:.0%}")

# %%
# The same as torch's attention with the dense mask; two sequences, four heads.
torch.manual_seed(0)
q, k, v = (torch.randn(2, 4, length, 32) for _ in range(3))
out = attend(mask, q, k, v)
want = torch.nn.functional.scaled_dot_product_attention(
    q, k, v, attn_mask=torch.as_tensor(dense) > 0
)
print(f"largest difference from torch's: {(out - want).abs().max():.0e}")
assert torch.allclose(out, want, atol=1e-5)

# %%
# The weights of one head, from their parts: scores where the mask is, then a softmax of what is there.
scores = ow.sddmm(mask, q[0, 0], k[0, 0].T) / 32**0.5
weights = ow.softmax(scores, 1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2))
ow.plot.spy(ow.asarray(dense, format="csr"), ax=left)
left.set_title("who sees whom")
picture = weights.to_dense().numpy()[:96, :96]
right.imshow(np.where(picture > 0, picture, np.nan), cmap="viridis", vmax=0.06)
right.set_title("weights of the first 96 positions")
plt.show()

# sphinx_gallery_thumbnail_path = "../examples/gallery/pictures/attention.png"
