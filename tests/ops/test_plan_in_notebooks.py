"""A Plan in a notebook: its printed form, and below it the loops of each kernel, folded."""

from __future__ import annotations

import re
from html import unescape

import numpy as np

import openwork as ow


def test_a_plan_shows_itself_with_its_kernels_folded() -> None:
    A = ow.eye(3, format="csr")
    plan = ow.explain(lambda A: (A @ A) @ np.ones(3), A)
    html = plan._repr_html_()
    printed, *kernels = re.findall(r"<pre>(.*?)</pre>", html, re.DOTALL)
    assert unescape(printed) == str(plan)
    assert [unescape(k) for k in kernels] == [e.loops for e in plan.executables]
    assert len(kernels) == html.count("<details><summary>") == html.count("</details>") == 2
    titles = [unescape(t) for t in re.findall(r"<summary>(.*?)</summary>", html)]
    assert all(title.removesuffix(": loops") in str(plan) for title in titles)
    assert "<details open" not in html


def test_text_of_a_plan_is_no_markup() -> None:
    A = ow.asarray(np.eye(3), format="csr")
    html = ow.explain("y[i] += A[i,j] * (A[i,j] < 2)", A)._repr_html_()
    assert not set(re.findall(r"<(\w+)", html)) - {"pre", "details", "summary"}
    assert "&lt;" in html


def test_a_plan_without_kernels_has_nothing_to_fold() -> None:
    plan = ow.explain(lambda A: A.T, ow.eye(3, format="csr"))
    assert plan._repr_html_() == f"<pre>{plan}</pre>"
