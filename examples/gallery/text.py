"""
A text classifier: which library wrote this?
============================================

The documentation of NumPy's and SciPy's functions is text that everybody has. A matrix counts which words
each of them has, and a logistic regression learns to tell the two apart. It is trained with two products in
each step, `X @ w` and `X.T @ r`.
"""

import re
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats

import openwork as ow

# %%
# The texts, without the words that would tell at once.
said = {"numpy", "np", "scipy", "sp"}
modules = {
    0: (np, np.linalg, np.fft, np.ma),
    1: (scipy.linalg, scipy.signal, scipy.special, scipy.stats),
}
texts = {}
for label, homes in modules.items():
    for home in homes:
        for name in sorted(dir(home)):
            doc = getattr(getattr(home, name), "__doc__", None) or ""
            if not name.startswith("_") and len(doc) > 400:
                words = re.findall(r"[a-z]{2,}", doc.lower())
                text = [w for w in words if w not in said]
                texts[label, re.sub(r"\W", "", doc)[:300]] = text
labels = np.array([label for label, _ in texts], float)
found_in = Counter(w for text in texts.values() for w in set(text))
words = sorted(w for w, n in found_in.items() if n >= 3)
column = {w: k for k, w in enumerate(words)}

# %%
# A row for each text. Repeated coordinates mean their sum, so counting is adding ones.
pairs = [(k, w) for k, text in enumerate(texts.values()) for w in text if w in column]
places = np.array([(k, column[w]) for k, w in pairs]).T
shape = (len(texts), len(words))
X = ow.sparse_coo_tensor(places, np.ones(len(pairs)), shape).asformat("csr")
seen = X.pattern().sum(axis=0).to_numpy()
X = np.log1p(X) * np.log(len(texts) / seen)
X = X / np.sqrt((X * X).sum(axis=1).to_numpy())[:, None]
print(
    f"{X.shape[0]} texts, {X.shape[1]} words, {X.density:.1%} of all counts are not 0"
)

# %%
# Four texts in five are learned from, the others asked about.
order = np.random.default_rng(0).permutation(len(labels))
train, test = np.split(order, [4 * len(order) // 5])
T, t = X[train], labels[train]
w, b = np.zeros(len(words)), 0.0
for _ in range(300):
    wrong = 1 / (1 + np.exp(-(T @ w + b))) - t
    w, b = w - 20 * ((T.T @ wrong) / len(t) + 1e-4 * w), b - wrong.mean()
right = ((X[test] @ w + b > 0) == labels[test]).mean()
assert right > 0.8
print(f"right on {right:.0%} of {len(test)} texts that it had not seen")

# %%
# The words that decide.
most = np.concatenate([np.argsort(w)[:10], np.argsort(w)[-10:]])
figure, ax = plt.subplots(figsize=(6, 5))
ax.barh(
    [words[k] for k in most], w[most], color=["C0" if w[k] < 0 else "C1" for k in most]
)
ax.set_xlabel("NumPy        weight        SciPy")
plt.show()
