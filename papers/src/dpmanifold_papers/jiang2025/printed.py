"""Numbers that Jiang, Chang and Hu (2025) print, with the units they print them in."""

from __future__ import annotations

MU = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5)
REPETITIONS = 1000

# Tables 1 to 4; the last entry of a row is without privacy.
PAPER = {
    ("sphere", "mean"): (.941, .953, .945, .96, .954, .939, .941, .954, .96, .954),
    ("sphere", "variance"): (.957, .944, .928, .941, .931, .924, .938, .942, .931, .947),
    ("spd", "mean"): (.945, .943, .942, .95, .96, .966, .966, .962, .964, .971),
    ("spd", "variance"): (.95, .964, .939, .948, .937, .937, .946, .947, .95, .954),
}  # fmt: skip
DISTANCE = {
    ("sphere", "mean"): (183, 126, 116, 106, 106, 107, 105, 105, 103, 103),
    ("sphere", "variance"): (137, 73.9, 51.1, 31.8, 25.6, 21.5, 17.6, 16.2, 16.4, 14.6),
    ("spd", "mean"): (144, 78.1, 59.9, 46.6, 42.1, 40.1, 39.4, 38.2, 38, 37.7),
    ("spd", "variance"): (207, 105, 71.6, 46.4, 34.9, 29.2, 22.9, 21.4, 20.8, 19.7),
}  # fmt: skip
PRINTED_UNIT = {
    ("sphere", "mean"): 1e-4, ("sphere", "variance"): 1e-5, ("spd", "mean"): 1e-3, ("spd", "variance"): 1e-4,
}  # fmt: skip
# Their Tables 2 and 4 fit their own formulas, and sampling alone, only in units ten times as large.
MEANT_UNIT = {**PRINTED_UNIT, ("sphere", "variance"): 1e-4, ("spd", "variance"): 1e-3}
EXACT_MU = (.099, .199, .300, .500, .700, .999, 1.500, 2.000, 2.500)  # fmt: skip

# Table 5, OCTMNIST class 0: three largest eigenvalues, their share, effective radius, volume, distance.
OCT = {
    0.1: (.029, .008, .005, .714, .242, 3.32e-21, .139),
    1.0: (.026, .005, .002, .928, .190, 2.60e-31, .014),
    2.0: (.026, .005, .002, .935, .189, 2.63e-33, .007),
    None: (.026, .005, .002, .942, .188, 1.96e-39, None),
}  # fmt: skip
