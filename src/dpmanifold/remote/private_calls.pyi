# Written by tools/client_stub.py.
# ruff: noqa: D101, D102, E501
# fmt: off
from typing import Any, Literal, overload

from dpmanifold.ball import Ball
from dpmanifold.inference import (
    ConfidenceRegion,
    GeodesicRegression,
    KSampleTest,
    LinearDiscriminant,
    PrincipalComponents,
    TwoSampleTest,
    VarianceInterval,
)
from dpmanifold.privacy import Promise
from dpmanifold.release import Release
from dpmanifold.remote.pending import Pending
from dpmanifold.stats.query import Query

BallGiven = Ball | Release | Pending[Any] | str | None

def method_of(query: Query) -> Any: ...

class PrivateCalls:
    def __getattr__(self, name: str) -> Any: ...
    @overload
    def mean(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        estimand: str | None = ..., mechanism: str = ..., refine: bool = ..., noise_shape: str | None = ..., shrinkage: str | None = ...,
    ) -> Release: ...
    @overload
    def mean(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        estimand: str | None = ..., mechanism: str = ..., refine: bool = ..., noise_shape: str | None = ..., shrinkage: str | None = ...,
    ) -> Pending[Release]: ...
    @overload
    def median(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        refine: bool = ...,
    ) -> Release: ...
    @overload
    def median(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        refine: bool = ...,
    ) -> Pending[Release]: ...
    @overload
    def region(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        level: float = ..., estimand: str | None = ..., refine: bool = ...,
    ) -> ConfidenceRegion: ...
    @overload
    def region(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        level: float = ..., estimand: str | None = ..., refine: bool = ...,
    ) -> Pending[ConfidenceRegion]: ...
    @overload
    def variance(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        mechanism: str = ..., about: Release | Pending[Release] | str | None = ...,
    ) -> Release: ...
    @overload
    def variance(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        mechanism: str = ..., about: Release | Pending[Release] | str | None = ...,
    ) -> Pending[Release]: ...
    @overload
    def variance_interval(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        level: float = ..., refine: bool = ...,
    ) -> VarianceInterval: ...
    @overload
    def variance_interval(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        level: float = ..., refine: bool = ...,
    ) -> Pending[VarianceInterval]: ...
    @overload
    def pga(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        count: int = ..., level: float = ..., refine: bool = ...,
    ) -> PrincipalComponents: ...
    @overload
    def pga(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        count: int = ..., level: float = ..., refine: bool = ...,
    ) -> Pending[PrincipalComponents]: ...
    @overload
    def ball(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        coverage: float = ...,
    ) -> Release: ...
    @overload
    def ball(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        coverage: float = ...,
    ) -> Pending[Release]: ...
    @overload
    def class_means(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        estimand: str | None = ..., mechanism: str = ..., refine: bool = ..., noise_shape: str | None = ..., shrinkage: str | None = ...,
    ) -> dict[Any, Release]: ...
    @overload
    def class_means(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        estimand: str | None = ..., mechanism: str = ..., refine: bool = ..., noise_shape: str | None = ..., shrinkage: str | None = ...,
    ) -> Pending[dict[Any, Release]]: ...
    @overload
    def two_sample_test(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        level: float = ..., estimand: str | None = ..., refine: bool = ...,
    ) -> TwoSampleTest: ...
    @overload
    def two_sample_test(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        level: float = ..., estimand: str | None = ..., refine: bool = ...,
    ) -> Pending[TwoSampleTest]: ...
    @overload
    def k_sample_test(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        level: float = ..., estimand: str | None = ..., refine: bool = ...,
    ) -> KSampleTest: ...
    @overload
    def k_sample_test(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        level: float = ..., estimand: str | None = ..., refine: bool = ...,
    ) -> Pending[KSampleTest]: ...
    @overload
    def lda(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        refine: bool = ...,
    ) -> LinearDiscriminant: ...
    @overload
    def lda(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        refine: bool = ...,
    ) -> Pending[LinearDiscriminant]: ...
    @overload
    def regression(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ...,
        level: float = ..., refine: bool = ...,
    ) -> GeodesicRegression: ...
    @overload
    def regression(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[False], timeout: float | None = ...,
        level: float = ..., refine: bool = ...,
    ) -> Pending[GeodesicRegression]: ...
