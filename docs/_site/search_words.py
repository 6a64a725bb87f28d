"""What readers search for -> the page or the function that answers: entries of the index that the site's search ranks first.

Each public name is found as written in code (`ow.linalg.cg`, `linalg.cg`, `cg`). WORDS adds those by which other libraries
and books call it, and the words that lead to a page.
"""

from __future__ import annotations

from typing import Any

import reference_pages
from docutils import nodes
from sphinx import addnodes
from sphinx.search.en import SearchEnglish
from sphinx.transforms import SphinxTransform

WORDS = {
    "install": ("install", "installation", "pip", "pip install", "extras", "requirements", "dependencies"),
    "tutorial": ("tutorial", "getting started", "quickstart", "introduction", "first steps"),
    "guide": ("guide", "user guide"),
    "citation": ("cite", "citation", "bibtex", "licence", "license", "bsd"),
    "changelog": ("changelog", "release notes", "what is new", "versions"),
    "contributing": ("contributing", "contribute", "development", "build the documentation"),
    "benchmarks": ("benchmark", "benchmarks", "performance", "speed", "how fast"),
    "coming-from/scipy": (
        "scipy", "scipy.sparse", "csr_matrix", "csc_matrix", "coo_matrix", "lil_matrix", "dok_matrix", "bsr_matrix",
        "dia_matrix", "drop-in replacement", "drop-in scipy", "csr_array", "csc_array", "coo_array", "lil_array", "migrate from scipy",
    ),
    "coming-from/torch": ("torch.sparse", "torch sparse", "sparse_csr", "to_sparse"),
    "coming-from/pydata": ("pydata sparse", "sparse.coo"),
    "coming-from/graphblas": ("graphblas",),
    "coming-from/taco-mlir": ("taco", "mlir"),
    "formats": ("format", "formats", "storage format", "csr", "csc", "coo", "bsr", "dia", "ell", "csf", "custom format",
                "own format", "format of my own", "print storage", "how it is stored"),
    "values": ("fill value", "fill_value", "explicit zeros", "eliminate_zeros", "zeros"),
    "masked": ("masked", "masked tensor", "missing", "missing values", "nan", "masked array",
               "mean of missing values"),
    "notation": ("index notation", "einsum notation", "einstein summation"),
    "ownership": ("copy", "memory", "in-place", "in place", "views", "share memory"),
    "fusion": ("fusion", "lazy evaluation", "several operations", "query plan"),
    "advice": ("which format", "choose a format", "visualise", "visualize", "picture", "plot a matrix", "advice"),
    "linalg": ("linear algebra", "solver", "solvers", "solve a system", "linear system", "sparse solver"),
    "linalg#progress": ("progress", "progress bar", "verbose"),
    "linalg#preconditioners": ("preconditioner", "preconditioners", "incomplete cholesky", "ilu", "multigrid"),
    "linalg#direct-solutions": ("direct solver", "factorization", "factorisation", "cholesky factorization", "lu"),
    "linalg#assembly": ("assembly", "finite elements", "fem", "stiffness matrix"),
    "graphs": ("graph", "graphs", "networkx", "csgraph", "adjacency matrix"),
    "decompositions": ("tensor decomposition", "decomposition", "cp decomposition", "parafac", "low rank"),
    "torch": ("torch", "pytorch", "autograd"),
    "torch-gradients#gradients": ("gradient", "gradients", "backward", "derivative", "backpropagation", "differentiation"),
    "torch-layers#layers": ("layers", "neural network", "nn.module", "graph neural network", "gnn"),
    "torch-compile#torch-compile": ("torch.compile", "compile a model"),
    "dask": ("dask", "distributed", "parallel", "cluster"),
    "scale": ("large data", "out of core", "larger than memory", "memory map", "big matrix"),
    "files": (
        "matrix market", "matrixmarket", "mtx", "hdf5", "parquet", "npz", "zarr", "file formats", "files", "svmlight",
        "frostt", "anndata",
    ),
    "compatibility": ("numpy", "scikit-learn", "sklearn", "xarray", "pandas", "interoperability", "array api"),
    "security": ("security", "untrusted files"),
    "tuning": ("tuning", "thresholds"),
    "glossary": ("glossary", "terms"),
    "how-it-works": ("compiler", "how it works", "llvm", "jit"),
    "gallery/index": ("gallery", "examples"),
    "openwork.write": ("save", "save to a file", "write to a file", "savez", "save_npz", "mmwrite", "export", "dump"),
    "openwork.read": ("load", "load a file", "read a file", "mmread", "load_npz", "import a matrix"),
    "openwork.topk": ("top-k", "top k", "largest elements"),
    "openwork.matmul": (
        "spmm", "spmv", "spgemm", "matrix multiplication", "sparse matrix multiplication", "matrix product",
        "matrix-vector product", "dot",
    ),
    "openwork.sddmm": ("sampled product", "sampled dense-dense"),
    "openwork.asarray": ("from numpy", "from scipy", "csr_matrix from dense", "convert from", "constructor"),
    "openwork.sparse_coo_tensor": ("from coordinates", "triplets", "triples", "ijv"),
    "openwork.sparse_csr_tensor": ("from csr buffers", "indptr"),
    "openwork.diags_array": ("diags", "spdiags", "tridiagonal matrix", "diagonal matrix"),
    "openwork.eye": ("identity", "identity matrix"),
    "openwork.random": ("random matrix", "random sparse matrix", "sprand"),
    "openwork.kron": ("kronecker", "kronecker product"),
    "openwork.block_array": ("bmat", "block matrix"),
    "openwork.linalg.cg": ("conjugate gradient", "conjugate gradients", "pcg", "krylov"),
    "openwork.linalg.spsolve": ("sparse direct solve", "backslash"),
    "openwork.linalg.eigsh": ("eigenvalues", "eigenvectors", "eigenvalue", "lanczos", "arpack"),
    "openwork.linalg.svds": ("singular values", "truncated svd", "singular value decomposition"),
    "openwork.linalg.pca": ("principal components", "principal component analysis"),
    "openwork.linalg.ic0": ("incomplete cholesky factorization",),
    "openwork.linalg.amg": ("algebraic multigrid",),
    "openwork.graph.pagerank": ("page rank",),
    "openwork.graph.sssp": ("dijkstra", "shortest path"),
    "openwork.graph.bfs": ("breadth-first search", "breadth first search"),
    "openwork.graph.components": ("connected components",),
    "openwork.nn.GraphConv": ("gcn", "graph convolution"),
    "openwork.nn.prune": ("pruning", "prune a network"),
    "openwork.nn.SparseAttention": ("attention", "sparse attention"),
    "openwork.nn.SparseEmbedding": ("embedding",),
    "openwork.decomposition.cp_als": ("cp", "candecomp", "alternating least squares"),
    "openwork.convert": ("convert a file", "convert files"),
    "openwork.plot.spy": ("sparsity pattern", "spy plot"),
    "openwork.explain": ("explain plan", "show kernel", "generated code"),
    "openwork.semiring": ("min-plus", "tropical"),
    "openwork.Tensor.to_numpy": ("toarray", "todense", "to_dense", "to dense"),
    "openwork.Tensor.asformat": ("tocsr", "tocsc", "tocoo", "change the format", "convert to csr"),
    "openwork.Tensor.nse": ("nnz", "number of nonzeros"),
}  # fmt: skip


def code_names(target: str) -> list[str]:
    """The ways in which code writes a public name; its last part alone where no other name or page has a better claim."""
    short = target.removeprefix("openwork.")
    names = [target, short, f"ow.{short}"]
    parent, _, last = short.rpartition(".")
    is_member = parent.rpartition(".")[2][:1].isupper()
    is_taken = any(last.lower() in words for words in WORDS.values()) or (
        parent and reference_pages.addresses().get(last) != target
    )
    return names if is_member or is_taken else [*names, last]


def entry(words: list[str] | tuple[str, ...], anchor: str) -> addnodes.index:
    """Main entries of the index."""
    return addnodes.index(
        "", entries=[("single", word, anchor, "main", None) for word in words]
    )


class Words(SearchEnglish):
    """English, where `ow` is left out of what is sought: it stands on every page."""

    stopwords = SearchEnglish.stopwords | {"ow"}


class SearchWords(SphinxTransform):
    """Puts the entries of a page and of the objects that it describes into the page."""

    default_priority = (
        890  # behind the collection of the printed index, which these would fill
    )

    def apply(self, **kwargs: Any) -> None:
        page = self.env.docname
        found = [
            entry(words, anchor)
            for target, words in WORDS.items()
            for name, _, anchor in [target.partition("#")]
            if name == page
        ]
        for signature in self.document.findall(addnodes.desc_signature):
            for target in signature["ids"]:
                if target.startswith("openwork."):
                    found.append(
                        entry([*code_names(target), *WORDS.get(target, ())], target)
                    )
        for section in self.document.findall(nodes.section):
            section.extend(found)
            break
