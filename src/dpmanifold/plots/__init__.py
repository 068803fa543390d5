"""Pictures of results: one function per picture, each of which returns a matplotlib Figure.

A picture is made from what a release holds and from public numbers, and says so itself: the promise is its footer, and
a mark tells whether it may be shown. Points that you add yourself must be public. matplotlib is an extra,
`pip install "dpmanifold[plots]"`, and is imported when the first picture is made.

>>> import numpy as np
>>> import dpmanifold as dpm
>>> from dpmanifold import plots
>>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0, source="textbook")
>>> release = dpm.private_mean([np.eye(2)] * 100, ball, dpm.GDP(mu=1.0), units=dpm.EACH_RECORD)
>>> figure = plots.show(release)          # figure.savefig("mean.pdf") writes it
>>> figure.texts[2].get_text()
'private release'
"""

from dpmanifold.plots.budget_use import history
from dpmanifold.plots.dispatch import PICTURES, Picture, show
from dpmanifold.plots.geodesic_plots import components, regression
from dpmanifold.plots.globe import sphere
from dpmanifold.plots.glyphs import matrix, product, tensors
from dpmanifold.plots.group_comparisons import groups, test
from dpmanifold.plots.landmark_shapes import shape
from dpmanifold.plots.lda_plot import classes
from dpmanifold.plots.numbers import balls, interval, outlook, table, vector
from dpmanifold.plots.plan_plots import plan, profile
from dpmanifold.plots.planes import tangent

__all__ = [
    "PICTURES",
    "Picture",
    "balls",
    "classes",
    "components",
    "groups",
    "history",
    "interval",
    "matrix",
    "outlook",
    "plan",
    "product",
    "profile",
    "regression",
    "shape",
    "show",
    "sphere",
    "table",
    "tangent",
    "tensors",
    "test",
    "vector",
]
