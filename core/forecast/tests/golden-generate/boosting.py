"""LightGBM on the series of numbers that tests/reference/boosting.rs draws too.

    python boosting.py > ../golden/boosting.json
"""

import json
import time

import lightgbm
import numpy as np

TRAIN, TEST, FEATURES, NOISE = 10_000, 2_000, 10, 4.0
DRAWS = FEATURES + 12


def uniform(count: int) -> np.ndarray:
    """SplitMix64 (Steele, Lea and Flood 2014), from seed 1."""
    with np.errstate(over="ignore"):
        z = np.uint64(1) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(float) / 2.0**53


draws = uniform((TRAIN + TEST) * DRAWS).reshape(-1, DRAWS)
x = draws[:, :FEATURES].astype(np.float32)
noise = draws[:, FEATURES:].sum(axis=1) - 6.0
wide = x.astype(float)
signal = 10 * np.sin(np.pi * wide[:, 0] * wide[:, 1]) + 20 * (wide[:, 2] - 0.5) ** 2 + 10 * wide[:, 3] + 5 * wide[:, 4]
y = 4.75 * signal + NOISE * noise

settings = dict(objective="regression", num_threads=1, num_leaves=31, learning_rate=0.1, verbose=-1, seed=0)
best_ms = float("inf")
for _ in range(5):
    started = time.perf_counter()
    model = lightgbm.train(settings, lightgbm.Dataset(x[:TRAIN], y[:TRAIN]), num_boost_round=100)
    best_ms = min(best_ms, (time.perf_counter() - started) * 1000)
rmse = float(np.sqrt(np.mean((model.predict(x[TRAIN:]) - y[TRAIN:]) ** 2)))
print(
    json.dumps(
        {
            "peer": f"LightGBM {lightgbm.__version__}, 31 leaves, 100 trees, one thread",
            "fit_ms": round(best_ms, 2),
            "rmse": rmse,
            "target_deviation": float(y.std()),
            "first_target": float(y[0]),
        }
    )
)
