"""The phases of the multilevel method of `separators`, as parts of its kernel's text.

match, coarsen     heavy edges are matched, and a coarser graph is made
grow, keep         halves of the coarsest graph from several vertices; the best is kept
project, refine    a separator of a finer graph, and moves of its vertices, undone beyond the best state
levels             another candidate: a level of breadth-first search
"""

from __future__ import annotations

__all__ = ["PHASES"]

_MATCH = """
for v in range(0, m):
    mate[v] = -1
    walk[v] = v
for s in range(0, m):
    seed = (seed * 1103515245 + 12345) & 2147483647
    r = s + ((seed >> 8) % min(m - s, 64))
    v = i64(walk[r])
    walk[r] = walk[s]
    walk[s] = v
    if mate[v] < 0:
        chosen: i64 = v + 0
        heavy: i64 = 0
        for p in range(eo + gpos[vo + level + v], eo + gpos[vo + level + v + 1]):
            u = i64(gcrd[p])
            if mate[u] < 0 and gedge[p] > heavy and i64(weight[vo + u]) + i64(weight[vo + v]) <= heaviest:
                chosen = u
                heavy = i64(gedge[p])
        mate[v] = chosen
        mate[chosen] = v
count: i64 = 0
for v in range(0, m):
    u = i64(mate[v])
    if v <= u:
        coarse[vo + v] = count
        coarse[vo + u] = count
        count += 1
"""

"""Vertices are visited in a random order of near ones, so that what they touch is in the cache."""

_COARSEN = """
nv = vo + m
ne = eo + ends
np_ = nv + level + 1
for c in range(0, count):
    slot[c] = 0
gpos[np_] = 0
k: i64 = 0
for v in range(0, m):
    u = i64(mate[v])
    if v <= u:
        c = i64(coarse[vo + v])
        first = k + 0
        w: i64 = i64(weight[vo + v])
        x: i64 = v + 0
        again: i64 = 1
        while again == 1:
            for p in range(eo + gpos[po + x], eo + gpos[po + x + 1]):
                d = i64(coarse[vo + gcrd[p]])
                if d != c:
                    if slot[d] > first:
                        gedge[ne + slot[d] - 1] = gedge[ne + slot[d] - 1] + gedge[p]
                    else:
                        gcrd[ne + k] = d
                        gedge[ne + k] = gedge[p]
                        k += 1
                        slot[d] = k
            again = 0
            if x != u:
                x = u
                w += i64(weight[vo + u])
                again = 1
        weight[nv + c] = w
        gpos[np_ + c + 1] = k
"""

_GROW = """
for v in range(0, m):
    part[v] = 1
load[0] = 0
load[1] = n
apart = 0
many: i64 = 0
next: i64 = 0
seed = (seed * 1103515245 + 12345) & 2147483647
next = (seed >> 8) % m
while 2 * load[0] + apart < n:
    if many == 0:
        while part[next] != 1:
            next = (next + 1) % m
        r = next + 0
        part[r] = 2
        load[1] = load[1] - weight[vo + r]
        apart += i64(weight[vo + r])
        sep[0] = r
        at[r] = 0
        many = 1
        c1: i64 = 0
        for q in range(eo + gpos[vo + level + r], eo + gpos[vo + level + r + 1]):
            if part[gcrd[q]] == 1:
                c1 += i64(weight[vo + gcrd[q]])
        cost[2 * r] = c1
        cost[2 * r + 1] = 0
    v: i64 = i64(sep[0])
    for s in range(1, many):
        u = i64(sep[s])
        if i64(cost[2 * u]) - i64(weight[vo + u]) < i64(cost[2 * v]) - i64(weight[vo + v]):
            v = u
    a: i64 = 0
    pulls: i64 = 0
    MOVE
"""

_MOVE = """
b = 1 - a
w = i64(weight[vo + v])
part[v] = a
load[a] = load[a] + w
apart = apart - w
many = many - 1
tail = i64(sep[many])
sep[at[v]] = tail
at[tail] = at[v]
for p in range(eo + gpos[vo + level + v], eo + gpos[vo + level + v + 1]):
    u = i64(gcrd[p])
    if part[u] == 2:
        cost[2 * u + b] = i64(cost[2 * u + b]) + w
    elif part[u] == b:
        z = i64(weight[vo + u])
        part[u] = 2
        load[b] = load[b] - z
        apart = apart + z
        sep[many] = u
        at[u] = many
        many += 1
        pulled[pulls] = u
        pulls += 1
        near: i64 = 0
        far: i64 = 0
        for q in range(eo + gpos[vo + level + u], eo + gpos[vo + level + u + 1]):
            x = i64(gcrd[q])
            if part[x] == a:
                near += i64(weight[vo + x])
            elif part[x] == b:
                far += i64(weight[vo + x])
            else:
                cost[2 * x + a] = i64(cost[2 * x + a]) - z
        cost[2 * u + b] = near
        cost[2 * u + a] = far
"""
"""v leaves the separator for side a; its neighbours on the other side join the separator."""

_PROJECT = """
level = level - 1
vo = level_v[level]
eo = level_e[level]
m = level_n[level]
for v in range(0, m):
    best[v] = part[coarse[vo + v]]
many: i64 = 0
for v in range(0, m):
    part[v] = best[v]
    if part[v] == 2:
        sep[many] = v
        at[v] = many
        many += 1
"""

_LEVELS = """
r: i64 = 0
reached: i64 = 0
for turn in range(0, 2):
    for v in range(0, n):
        mate[v] = -1
    mate[r] = 0
    walk[0] = r
    reached = 1
    done: i64 = 0
    while done < reached:
        v = i64(walk[done])
        done += 1
        for p in range(pos[v], pos[v + 1]):
            u = i64(crd[p])
            if mate[u] < 0:
                mate[u] = mate[v] + 1
                walk[reached] = u
                reached += 1
    r = i64(walk[reached - 1])
chosen: i64 = 0
narrow: i64 = n + 1
s: i64 = 0
while s < reached:
    e: i64 = s + 0
    while e < reached and mate[walk[e]] == mate[walk[s]]:
        e += 1
    if e - s < narrow and 5 * s >= 2 * reached - 5 * (e - s) and 5 * e <= 3 * reached + 5 * (e - s):
        narrow = e - s
        chosen = i64(mate[walk[s]])
    s = e + 0
load[0] = 0
load[1] = 0
apart = 0
for v in range(0, n):
    side: i64 = 2
    if mate[v] < 0:
        side = i64(load[0] > load[1])
    elif mate[v] < chosen:
        side = 0
    elif mate[v] > chosen:
        side = 1
    part[v] = side
    if side == 2:
        apart += 1
    else:
        load[side] = load[side] + 1
"""
"""The narrowest of the middle levels of breadth-first search from a vertex far from all others."""

_REFINE = """
size: i64 = 0
for v in range(0, m):
    if part[v] == 2:
        sep[size] = v
        at[v] = size
        size += 1
passes: i64 = 0
limit = (3 * n) // 5 + 1
while passes < 10:
    passes += 1
    tag += 1
    many: i64 = size + 0
    for s in range(0, many):
        v = i64(sep[s])
        c0: i64 = 0
        c1: i64 = 0
        for q in range(eo + gpos[vo + level + v], eo + gpos[vo + level + v + 1]):
            x = i64(gcrd[q])
            if part[x] == 0:
                c1 += i64(weight[vo + x])
            elif part[x] == 1:
                c0 += i64(weight[vo + x])
        cost[2 * v] = c0
        cost[2 * v + 1] = c1
    least: i64 = apart + 0
    even: i64 = abs(load[0] - load[1])
    moves: i64 = 0
    good: i64 = 0
    pulls: i64 = 0
    patience = min(200, max(25, many // 3))
    better: i64 = 0
    v: i64 = 0
    while v >= 0 and moves - good < patience and moves < m:
        v = -1
        a: i64 = 0
        top: i64 = 0
        for s in range(0, many): # novector
            u = i64(sep[s])
            if locked[u] != tag:
                w0 = i64(weight[vo + u])
                gain0 = w0 - i64(cost[2 * u])
                gain1 = w0 - i64(cost[2 * u + 1])
                if load[0] + w0 <= limit and (v < 0 or gain0 > top or (gain0 == top and load[0] < load[a])):
                    v = u
                    a = 0
                    top = gain0
                if load[1] + w0 <= limit and (v < 0 or gain1 > top or (gain1 == top and load[1] < load[a])):
                    v = u
                    a = 1
                    top = gain1
        if v >= 0:
            locked[v] = tag
            moved[moves] = 2 * v + a
            MOVE
            moves += 1
            move_end[moves] = pulls
            difference = abs(load[0] - load[1])
            if apart < least or (apart == least and difference < even):
                if apart < least:
                    better = 1
                least = apart + 0
                even = difference
                good = moves + 0
    move_end[0] = 0
    while moves > good:
        moves = moves - 1
        u = i64(moved[moves]) >> 1
        side = i64(moved[moves]) & 1
        for k in range(move_end[moves], move_end[moves + 1]):
            x = i64(pulled[k])
            part[x] = 1 - side
            load[1 - side] = load[1 - side] + i64(weight[vo + x])
            apart = apart - i64(weight[vo + x])
            many = many - 1
            tail_ = i64(sep[many])
            sep[at[x]] = tail_
            at[tail_] = at[x]
        part[u] = 2
        load[side] = load[side] - i64(weight[vo + u])
        apart = apart + i64(weight[vo + u])
        sep[many] = u
        at[u] = many
        many += 1
    size = many + 0
    if better == 0:
        passes = 10
"""

_KEEP = """
worth = apart * n + abs(load[0] - load[1])
if score < 0 or worth < score:
    score = worth
    for v in range(0, m):
        best[v] = part[v]
if step == trials - 1 or step == last:
    load[0] = 0
    load[1] = 0
    apart = 0
    for v in range(0, m):
        part[v] = best[v]
        if part[v] == 2:
            apart += i64(weight[vo + v])
        else:
            load[part[v]] = load[part[v]] + i64(weight[vo + v])
"""

PHASES = {
    "MATCH": _MATCH, "COARSEN": _COARSEN, "GROW": _GROW, "PROJECT": _PROJECT, "LEVELS": _LEVELS, "REFINE": _REFINE,
    "KEEP": _KEEP, "MOVE": _MOVE,
}  # fmt: skip
"""By the names that stand for them, those first that name others."""
