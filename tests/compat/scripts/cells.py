"""Single cells: counts read and filtered, normalised, variable genes, principal components, neighbours, clusters."""

import os

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import MaxAbsScaler, normalize

counts = sp.csr_array(mmread(os.environ["MATRIX"]).T, dtype=np.float64)  # 10x files have a row for each gene
total, n_genes = np.asarray(counts.sum(axis=1)).ravel(), counts.count_nonzero(axis=1)
keep = (n_genes >= 3) & (total < np.quantile(total, 0.99))
X = counts[keep]
X = X[:, X.count_nonzero(axis=0) >= 3]
kept = X.copy()

library = np.asarray(X.sum(axis=1)).ravel()
X = sp.diags_array(np.median(library) / library) @ X
X.data = np.log1p(X.data)
X = X.tocsr()

mean = np.asarray(X.mean(axis=0)).ravel()
variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
dispersion = np.where(mean > 0, variance / np.maximum(mean, 1e-12), 0)
variable = np.sort(np.argsort(-dispersion, kind="stable")[:60])
V = X.tocsc()[:, variable].tocsr()
same = VarianceThreshold().fit(V).variances_
scaled = MaxAbsScaler().fit_transform(V)

mu = np.asarray(V.mean(axis=0)).ravel()
centred = LinearOperator(
    V.shape, matvec=lambda v: V @ v - mu @ v, rmatvec=lambda u: V.T @ u - mu * u.sum(), dtype=float
)
u, s, _ = svds(centred, k=5, v0=np.ones(min(V.shape)), solver="arpack")
scores = u[:, ::-1] * s[::-1]
scores *= np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(5)])
scores = np.round(scores, 6)  # cells that are alike are equally near
svd = TruncatedSVD(5, algorithm="arpack", random_state=0).fit(V)

graph = sp.csr_array(NearestNeighbors(n_neighbors=8).fit(scores).kneighbors_graph(mode="distance"))
graph.data = np.exp(-((graph.data / graph.data.mean()) ** 2))
graph = graph.maximum(graph.T)
parts, component = connected_components(graph, directed=False)
label = np.arange(graph.shape[0]) % 12
for _ in range(5):  # labels of the neighbours, weighted
    votes = graph @ sp.csr_array((np.ones(len(label)), (np.arange(len(label)), label)), shape=(len(label), 12))
    votes.data = np.round(votes.data, 6)  # a tie is the first of its labels
    votes.sort_indices()
    label = np.asarray(votes.argmax(axis=1)).ravel()
members = sp.csr_array((np.ones(len(label)), (label, np.arange(len(label)))), shape=(12, len(label)))
profile = normalize(members, norm="l1") @ X
markers = np.asarray(profile.argmax(axis=1)).ravel()
results = [total, n_genes, kept.shape, library, X.sum(), mean, dispersion, variable, V.toarray(), same, scaled.sum(), s,
           np.abs(scores).sum(axis=0), svd.singular_values_, graph.nnz, parts, component, label, profile.toarray(),
           markers, sp.vstack([V, V]).shape, (X > 1).sum()]  # fmt: skip
