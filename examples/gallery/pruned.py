"""
How few weights does a network need?
====================================

A network that reads handwritten digits is trained, then loses more and more of its weights, the smallest
first, and trains on for a few steps. What is left is stored without zeros. The digits are the 1,797 of 8 by 8
pixels that come with scikit-learn.
"""

import copy

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits

import openwork as ow
from openwork.nn import prune

# %%
# Three images in four are learned from.
torch.manual_seed(0)
pixels, digits = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
pixels, digits = (pixels / 16).float(), digits.long()
order = torch.randperm(len(digits))
train, test = order[:1350], order[1350:]


def trained(network, steps, rate=0.01):
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(
            network(pixels[train]), digits[train]
        ).backward()
        optimizer.step()
    return (network(pixels[test]).argmax(1) == digits[test]).float().mean().item()


network = torch.nn.Sequential(
    torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
)
print(f"dense       {trained(network, 150):.1%} right")

# %%
# The same network with a part of its weights, as single elements and as blocks of 4 by 2.
kept = (0.5, 0.2, 0.1, 0.05, 0.02)
curves = {}
for form in ("csr", "bsr(2, 4)"):
    curves[form] = []
    for part in kept:
        small = prune(copy.deepcopy(network), amount=1 - part, format=form)
        curves[form].append(trained(small, 60))
        print(f"{form:10} {part:4.0%} of the weights, {curves[form][-1]:.1%} right")
assert curves["csr"][0] > 0.9

# %%
# What is left of the first layer in each.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
for form, curve in curves.items():
    left.plot(kept, curve, "o-", label=form)
left.set(
    xscale="log",
    xlabel="part of the weights",
    ylabel="share read correctly",
    xticks=kept,
    xticklabels=[f"{k:.0%}" for k in kept],
)
left.minorticks_off()
left.legend()
blocks = prune(copy.deepcopy(network), amount=0.8, format="bsr(2, 4)")[0].weight
ow.plot.spy(ow.asarray(blocks.detach(), like="numpy"), ax=right)
right.set_xticks([0, 32, 64])
right.set_title("a fifth of the first layer, in blocks")
plt.show()

# sphinx_gallery_thumbnail_path = "../examples/gallery/pictures/pruned.png"
