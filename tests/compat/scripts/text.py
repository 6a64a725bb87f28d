"""Term frequencies weighted by rarity, a truncated SVD, and the documents nearest to a query."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import norm, svds

TEXTS = """sparse arrays store few elements of many
a compiler makes kernels for sparse arrays
kernels of a compiler run on machines
many documents hold few of many words
a matrix of words and documents is sparse
machines run programs and programs run machines
the spectrum of a matrix is its eigenvalues
eigenvalues of a sparse matrix come from products
words of documents become rows of a matrix
a query is a row of few words""".splitlines()


def counts(texts):
    vocabulary, indptr, indices = {}, [0], []
    for text in texts:
        for word in text.split():
            indices.append(vocabulary.setdefault(word, len(vocabulary)))
        indptr.append(len(indices))
    made = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(texts), len(vocabulary)))
    made.sum_duplicates()
    return made, vocabulary


def tfidf(counted):
    seen = np.bincount(counted.indices, minlength=counted.shape[1])
    idf = np.log((1 + counted.shape[0]) / (1 + seen)) + 1
    weighted = counted.copy()
    weighted.data = np.log1p(weighted.data)
    weighted = weighted @ sp.diags_array(idf)
    lengths = norm(weighted, axis=1)
    return sp.diags_array(1 / lengths) @ weighted


counted, vocabulary = counts(TEXTS)
X = tfidf(counted).tocsr()
similar = X @ X.T
similar.setdiag(0)
nearest = similar.argmax(axis=1)
u, s, vt = svds(X, k=3, v0=np.ones(min(X.shape)))
order = np.argsort(-s)
reduced = np.abs(X @ vt.T)[:, order]
query = sp.csr_array(([1.0, 1.0], ([0, 0], [vocabulary["sparse"], vocabulary["kernels"]])), shape=(1, X.shape[1]))
scores = (query @ X.T).toarray().ravel()
frequent = X.multiply(counted > 1)
rare = X[:, np.flatnonzero(np.asarray(counted.sum(axis=0)).ravel() == 1)]
kept = X[X.sum(axis=1) > 1.5]
both = sp.hstack([X, sp.csr_array(scores[:, None])]).tocsc()
top = sp.find(X[[0]] > 0.3)
centred = X - sp.csr_array(np.ones((X.shape[0], 1))) @ sp.csr_array(X.mean(axis=0)[None, :])
results = [X.toarray(), similar.toarray(), nearest, s[order], reduced, scores, frequent.sum(), rare.shape, kept.shape,
           both[:, -1].toarray(), [len(t) for t in top], centred.sum(axis=0), X.max(axis=1).toarray(), X.nnz,
           len(sp.vstack([X, X]).nonzero()[0])]  # fmt: skip
