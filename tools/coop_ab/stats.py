# SPDX-License-Identifier: BSD-3-Clause
"""Medians and their confidence intervals, without assumptions about the shape of the noise."""

import math
import statistics

LEVEL = 0.95
MIN_FOR_VERDICT = 6  # with fewer samples even the widest interval covers less than LEVEL

median = statistics.median


def geometric_mean(values):
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def half_iqr_percent(values):
    """Half the interquartile range in % of the median: about the deviation of the middle half of the runs."""
    if len(values) < 2 or median(values) == 0:
        return None
    low, high = quartiles(values)
    return 50 * (high - low) / abs(median(values))


def coverage(n, k):
    """Probability that the k-th smallest and k-th largest of n samples enclose the true median: the number of samples below
    it is binomial (n, 1/2)."""
    return 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n


def median_interval(values, level=LEVEL):
    """(low, high, coverage) of the narrowest pair of order statistics that covers the true median with at least `level`.
    With too few samples for that (below 6 for 95 %) these are the extremes."""
    n = len(values)
    k = 1
    while k + 1 <= n // 2 and coverage(n, k + 1) >= level:
        k += 1
    ordered = sorted(values)
    return ordered[k - 1], ordered[n - k], coverage(n, k)
