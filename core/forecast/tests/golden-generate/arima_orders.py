"""Exact AICc of every order of each series in arima_series.csv, by statsforecast.

    python arima_orders.py ../shared/data/golden/arima_series.csv > ../golden/arima_aicc.csv

One row a series: its name, d, then 72 values, p-major, then q, then without and with constant; blank if the fit failed.
"""

import csv
import sys

import numpy as np
from statsforecast.arima import arima, ndiffs

FITTED, ORDER_MAX = 300, 5
out = csv.writer(sys.stdout, lineterminator="\n")
for row in csv.reader(open(sys.argv[1])):
    name, x = row[0], np.array([float(v) for v in row[1:]])[:FITTED]
    d = ndiffs(x, max_d=2)
    cells = []
    for p in range(ORDER_MAX + 1):
        for q in range(ORDER_MAX + 1):
            for constant in (False, True):
                try:
                    xreg = None
                    if constant and d == 1:
                        xreg = np.arange(1, FITTED + 1, dtype=float).reshape(-1, 1)
                    elif constant and d == 2:
                        raise ValueError("no constant with two differences")
                    fit = arima(x, order=(p, d, q), include_mean=constant and d == 0, xreg=xreg, method="CSS-ML")
                    k = p + q + int(constant) + 1
                    n = FITTED - d
                    aicc = -2 * fit["loglik"] + 2 * k + 2 * k * (k + 1) / (n - k - 1)
                    cells.append(f"{aicc:.4f}" if np.isfinite(aicc) else "")
                except Exception:
                    cells.append("")
    out.writerow([name, d, *cells])
    sys.stdout.flush()
