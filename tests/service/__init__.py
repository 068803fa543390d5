"""The service. A package, so that its name is not taken for that of the benchmark."""
