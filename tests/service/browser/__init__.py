"""The service in a browser. A package, so that one browser and one service serve all of its tests."""
