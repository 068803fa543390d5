"""scikit-learn adapters: a private mean, principal components, a minimum-distance classifier and a discriminant.

They add nothing to what `private_mean`, `private_pga`, `private_class_means` and `private_lda` promise; they carry
it through scikit-learn's tools, which fit the same records again and again. Every `fit` is a release of its own: all
spend from one :class:`~dpmanifold.Budget`, or from one account of a ledger. `clone`, `get_params` and `set_params` hand
on the very same object, and once it is spent `fit` raises :class:`~dpmanifold.BudgetError`.

What is not private, whatever the budget:

- **Scores, predictions for training records and `fit_transform`.** Only releases are protected. `score`,
  `cross_val_score`, `GridSearchCV.best_params_` and distances of private records are computed from the records.
- **Steps in front that learn from the records**: a scaler, PCA, pyRiemann's `TangentSpace`, `Whitening`, CSP or Xdawn.
  What they learnt leaks, and the ball after them is no longer public. Steps that treat each record by itself are safe:
  pyRiemann's `Covariances` works trial by trial.
- **Steps behind that learn**, such as a regression on tangent coordinates: they see transformed records, not releases.

scikit-learn's searches catch what `fit` raises and write `nan` for the score. Give `cross_val_score`, `GridSearchCV`
and the like `error_score="raise"`, so that a spent budget stops them. A search fits once per candidate and fold, and
with `refit=True` once more. Processes cannot share a Budget, so that `n_jobs=2` by itself is refused when it fits: use
`n_jobs=1`, or threads, `with joblib.parallel_config("threading", n_jobs=2)`. An account of a ledger is one and the same
in all processes: it goes with the estimator, and may be pickled.

`key` names one request: one fit, on one data set, with one set of parameters. Fitted again on the same records, the
estimator takes the release that is stored and pays nothing. Clones keep the key, so that a search or a cross-validation
with a key is refused at its second fit, which is another request: leave the key out there, and every fit is paid for by
itself under a random one.

This module needs scikit-learn; `import dpmanifold` does not.
"""

from dpmanifold.estimators import base as _base  # noqa: F401 (first, as it says how to get scikit-learn)
from dpmanifold.estimators.adapters import PrivateComponents, PrivateFrechetMean, PrivateLDA, PrivateMDM

__all__ = ["PrivateComponents", "PrivateFrechetMean", "PrivateLDA", "PrivateMDM"]
