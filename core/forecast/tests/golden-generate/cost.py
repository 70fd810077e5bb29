"""What the peers take for the work that benches/cost.rs measures, in the same run.

    python cost.py ../shared/data/golden/arima_series.csv
"""

import csv
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from statsforecast.arima import auto_arima_f

took = []
for row in csv.reader(open(sys.argv[1])):
    x = np.array([float(v) for v in row[1:]])[:300]
    if not took:
        auto_arima_f(x, seasonal=False)  # compiled on its first use
    started = time.perf_counter()
    auto_arima_f(x, seasonal=False)
    took.append((time.perf_counter() - started) * 1000)
boosting = subprocess.run([sys.executable, str(Path(__file__).parent / "boosting.py")], capture_output=True, check=True)
answer = json.loads(boosting.stdout)
print(
    json.dumps(
        {
            "arima_median_ms": statistics.median(took),
            "arima_mean_ms": statistics.mean(took),
            "boosting_fit_ms": answer["fit_ms"],
            "boosting_rmse": answer["rmse"],
        }
    )
)
