"""hmmlearn's Poisson hidden Markov model on a drawn series, from a fixed start, after a fixed count of rounds.

    python states.py > ../golden/states.json
"""

import json

import hmmlearn
import numpy as np
from hmmlearn.hmm import PoissonHMM

ROUNDS = 20
draw = np.random.default_rng(7)
true_rates, stay = [2.0, 12.0, 40.0], 0.92
state, series = 0, []
for _ in range(400):
    if draw.random() > stay:
        state = int(draw.integers(3))
    series.append(int(draw.poisson(true_rates[state])))
start = [1.0, 10.0, 30.0]
moves = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]]
model = PoissonHMM(n_components=3, n_iter=ROUNDS, tol=-np.inf, init_params="", params="stl")
model.startprob_ = np.full(3, 1 / 3)
model.lambdas_ = np.array(start).reshape(-1, 1)
model.transmat_ = np.array(moves)
model.fit(np.array(series).reshape(-1, 1))
print(
    json.dumps(
        {
            "peer": f"hmmlearn {hmmlearn.__version__}",
            "rounds": ROUNDS,
            "series": series,
            "start_rates": start,
            "start_transitions": moves,
            "rates": model.lambdas_.ravel().tolist(),
            "transitions": model.transmat_.tolist(),
        }
    )
)
