"""Options that several commands share, each in one place: the same word means the same everywhere.

Last, what `--workers` and `--dask` do.
"""

from __future__ import annotations

import contextlib
import logging
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from dpmanifold import data
from dpmanifold._cells import checked_names
from dpmanifold._check import optional_module
from dpmanifold.cli.failures import held_back, wants_traceback
from dpmanifold.cli.speech import working
from dpmanifold.data.specifications import class_words
from dpmanifold.engines import using
from dpmanifold.errors import InvalidArgumentError, Message
from dpmanifold.manifolds import SPACES
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP
from dpmanifold.stats import query
from dpmanifold.stats.shaping import PRIVATE

_BALL, _PROMISE, _OUT = "The public ball", "The promise (one kind)", "What to write"
_NUMBER = "NUMBER"
_LEDGER = "The ledger that pays"
ADVANCED = "Advanced"
"""The panel of options that few need; help shows it last."""

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Records: .npy, .npz (with --array), tables (.csv, .tsv, .csv.gz, .tsv.gz, .parquet, with --columns), a "
        "folder of them or a pattern in quotes ('parts/*.parquet'); landmarks (.tps); tensors (.nii, .nii.gz, with "
        "--mask; several images or a pattern, with --units image or FILE:COLUMN, a line for each image; a BIDS folder, "
        "with --units participant_id).",
    ),
]
Array = Annotated[str | None, typer.Option("--array", help="Array inside an .npz file.", rich_help_panel=ADVANCED)]
Ledger = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        envvar="DPM_LEDGER",
        metavar="PATH|URL",
        help="The ledger that pays for it, before anything is drawn: a file, or postgresql://... (dpm ledger create).",
        rich_help_panel=_LEDGER,
    ),
]
Population = Annotated[
    str | None,
    typer.Option(
        envvar="DPM_POPULATION",
        metavar="NAME",
        help="Whose budget; may be left out where the ledger has one population.",
        rich_help_panel=ADVANCED,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        help="Your name for this release. The same command with the same key gets the same release again, and pays "
        "nothing.",
        rich_help_panel=_LEDGER,
    ),
]
Secret = Annotated[
    pathlib.Path | None,
    typer.Option(
        envvar="DPM_SECRET",
        metavar="FILE",
        help="The key file under which data are fingerprinted, where it is not beside the ledger.",
        rich_help_panel=ADVANCED,
    ),
]
DataSet = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="PATH holds this data set (dpm ledger dataset add): open it once it is paid for, and compare it. What "
        "cannot be read then loses the release; dpm check costs nothing.",
        rich_help_panel=_LEDGER,
    ),
]
Principal = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who spends; the login name if left out.", rich_help_panel=ADVANCED),
]
Columns = Annotated[
    str | None, typer.Option(help="Columns of a table: a,b,c or x*; matrices as xx,xy,xz,yy,yz,zz (upper triangle).")
]
Order = Annotated[
    str | None,
    typer.Option(
        help="Six numbers of a tensor: row or fsl (xx,xy,xz,yy,yz,zz), dipy (xx,xy,yy,xz,yz,zz), "
        "mrtrix (xx,yy,zz,xy,xz,yz), camino (as fsl, behind two others in images).",
        rich_help_panel=ADVANCED,
    ),
]
Coordinates = Annotated[
    str | None,
    typer.Option(
        help="Of directions lonlat, decinc, colatlon, strikedip (degrees; columns of such names are known by them), "
        "or lonlat-radians and so on; of hyperbolic space poincare, klein, halfspace, halfplane, polar. A mean is told "
        "in them, too.",
        rich_help_panel=ADVANCED,
    ),
]
Mask = Annotated[
    str | None,
    typer.Option(
        help="An image that is above 0 in the voxels to take, with .nii or .nii.gz. In a BIDS folder masks beside the "
        "images are found; nonzero: voxels that are not 0.",
        rich_help_panel=ADVANCED,
    ),
]
_SPELLINGS = [name for kind in SPACES.own() for name in kind.spellings()]
_SPACE = (
    f"One of: {', '.join(_SPELLINGS)}; product:spd and the like for stacks of such points; or in full, such as "
    "'SPD(3)' or 'Product([SPD(3)] * 50)'."
)
Space = Annotated[str, typer.Option(help=_SPACE)]
SpaceOfRecords = Annotated[str | None, typer.Option("--space", help=f"{_SPACE} Needed, but with --dataset.")]
_SIZE_OF_STACK = "of product:NAME the number of factors and their size, such as 50,3"
Size = Annotated[
    str | None,
    typer.Option(
        help=f"Dimension, landmarks or matrix size; {_SIZE_OF_STACK}. From the records if left out.",
        rich_help_panel=ADVANCED,
    ),
]
SizeAlone = Annotated[
    str | None,
    typer.Option(help=f"Dimension d, number of landmarks k, or size k of the matrices; {_SIZE_OF_STACK}."),
]
Units = Annotated[
    str | None,
    typer.Option(
        help="Who owns each record: each-record (nobody owns two), a column or key of the data, FILE, or FILE:COLUMN. "
        "Needed, but with --dataset."
    ),
]
Radius = Annotated[
    float | None,
    typer.Option(
        help="How far records may lie from the center: radians on a sphere (below 0.785), "
        "log-eigenvalue distance on SPD matrices.",
        rich_help_panel=_BALL,
    ),
]
Center = Annotated[
    str | None,
    typer.Option(
        help="0,0,1 (coordinates), 0.7 (times the identity) or a file with one point; else the identity or zero. "
        "Directions and shapes need one.",
        rich_help_panel=_BALL,
    ),
]
Source = Annotated[str, typer.Option(help="Where this knowledge comes from; results repeat it.", rich_help_panel=_BALL)]
BallFile = Annotated[
    str | None,
    typer.Option(
        "--ball",
        help="A file instead: from dpm ball, or dpm descriptors --ball. whole-space: none, for extrinsic means.",
        rich_help_panel=_BALL,
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        metavar=_NUMBER,
        help="Pure, or with --delta approximate. 1 is usual; smaller is more private.",
        rich_help_panel=_PROMISE,
    ),
]
Delta = Annotated[
    str | None,
    typer.Option(
        metavar=_NUMBER,
        help="Goes with --epsilon: well below 1 / number of units, such as 1e-6.",
        rich_help_panel=_PROMISE,
    ),
]
Mu = Annotated[
    str | None,
    typer.Option(
        metavar=_NUMBER,
        help="Gaussian (GDP). 1 is usual; 0.24 is near epsilon 1, delta 1e-6.",
        rich_help_panel=_PROMISE,
    ),
]
Rho = Annotated[
    str | None,
    typer.Option(metavar=_NUMBER, help="Zero-concentrated (zCDP). 0.5 is about --mu 1.", rich_help_panel=_PROMISE),
]
Mechanism = Annotated[str, typer.Option(help=query.MECHANISM.help)]
Estimand = Annotated[str | None, typer.Option(help=query.ESTIMAND.help)]
Arithmetic = Annotated[
    str,
    typer.Option(
        help="auto: exact noise on a public grid wherever it can be, doubles in simulations. exact: insist. float: "
        "doubles, whose low bits can tell more than was promised.",
        rich_help_panel=ADVANCED,
    ),
]
Invalid = Annotated[
    str | None,
    typer.Option(
        help="raise (the default): refuse bad records (the message describes data). center: count them as the center "
        "(more than half: see --confirm). What cannot be read from the file at all is refused either way.",
        rich_help_panel=ADVANCED,
    ),
]
Confirm = Annotated[
    bool,
    typer.Option(
        "--confirm",
        help="Go on although more than half of the records were clipped or replaced.",
        rich_help_panel=ADVANCED,
    ),
]
ShowNotice = Annotated[
    bool,
    typer.Option(
        "--notice",
        help="Say on stderr how many records were clipped or replaced, even if it is no terminal, and why a "
        "release was lost that was paid for; with --dataset this alone does. NOT PRIVATE: for the curator alone.",
        rich_help_panel=ADVANCED,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Nothing on stderr but errors: no notice, no progress.", rich_help_panel=ADVANCED
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="As many worker processes on this machine, by Dask.", rich_help_panel=ADVANCED
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A Dask cluster that runs: the address of its scheduler, such as tcp://10.0.0.1:8786. Its workers read "
        "the files, by the same paths.",
        rich_help_panel=ADVANCED,
    ),
]
Normalize = Annotated[
    bool,
    typer.Option(
        "--normalize",
        help="Move nearly valid records onto the space first: unit length, symmetric. Each by itself.",
        rich_help_panel=ADVANCED,
    ),
]
Labels = Annotated[str, typer.Option(help="One class per record: a column or key of the data, FILE, FILE:COLUMN.")]
Classes = Annotated[str, typer.Option(help="The public list of classes: a,b,c or 0..9.")]
Seed = Annotated[
    int | None, typer.Option(help="For simulations: repeatable, hence NOT PRIVATE.", rich_help_panel=ADVANCED)
]
Out = Annotated[
    pathlib.Path, typer.Option("--out", "-o", help="The release as JSON; - for standard output.", rich_help_panel=_OUT)
]
Npy = Annotated[pathlib.Path | None, typer.Option(help="The released value as .npy as well.", rich_help_panel=ADVANCED)]
Picture = Annotated[pathlib.Path | None, typer.Option(help="A picture: .png, .svg, .pdf.", rich_help_panel=_OUT)]
Links = Annotated[
    str | None,
    typer.Option(
        help="Which landmarks --picture joins: 1-2,2-3,3-1, or a file with a pair on each line.",
        rich_help_panel=ADVANCED,
    ),
]
Html = Annotated[pathlib.Path | None, typer.Option("--html", help="A report in one .html file.", rich_help_panel=_OUT)]
Force = Annotated[
    bool, typer.Option("--force", help="Overwrite files that exist, but never what is read.", rich_help_panel=ADVANCED)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines, with everything that people see.")]
Reveal = Annotated[
    bool,
    typer.Option(
        "--reveal",
        help="Compare with the data, for data that may be shown: marks it NOT PRIVATE.",
        rich_help_panel=ADVANCED,
    ),
]


# -------------------------------------------------------------------- who does the work


_ADDRESS = re.compile(r"[a-z]+://\S+|[^\s:/]+:[0-9]+")


@contextlib.contextmanager
def at_work(words: Mapping[str, Any]) -> Iterator[None]:
    """Have the work inside the block done by the workers that were asked for, and end those that were started.

    They read and add up; what is spent, drawn and written is by this process alone.
    """
    workers, address = words["workers"], words["dask"]
    if workers is None and address is None:
        yield
        return
    if workers is not None and address is not None:
        raise InvalidArgumentError("--workers starts processes here, and --dask uses a cluster that runs. Give one.")
    if address is not None and not _ADDRESS.fullmatch(address):
        raise InvalidArgumentError(f"--dask {address} is no address of a scheduler, such as tcp://10.0.0.1:8786.")
    optional_module("distributed", "dask", "--dask" if workers is None else "--workers")
    from dpmanifold.engines import DaskEngine

    with _silence():
        engine: DaskEngine | None = None
        try:
            with working("starting workers" if address is None else "connecting", quiet=words["quiet"]):
                if address is not None:
                    engine = DaskEngine.connect(address)
                else:
                    with held_back():  # Dask cannot end workers that have not started
                        engine = DaskEngine.local(workers)
            with using(engine):
                yield
        finally:
            if engine is not None:
                with contextlib.suppress(Exception):  # what was released is released, whatever becomes of the workers
                    engine.close()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what Dask logs about its workers off the terminal: what matters comes as an error, in words of ours."""
    if wants_traceback():
        yield
        return
    dask = optional_module("dask", "dask", "--workers")
    here = logging.getLogger("distributed")
    level = here.level
    with dask.config.set({"logging": {"distributed": "critical"}}):  # of worker processes, which take it over
        here.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            here.setLevel(level)


# -------------------------------------------------------------------- promises, shapes and classes as they are typed


def promise_of(epsilon: str | None, delta: str | None, mu: str | None, rho: str | None) -> Promise:
    """Return the promise that was asked for: exactly one kind, and the numbers that were typed."""
    kinds = [name for name, value in (("--epsilon", epsilon), ("--mu", mu), ("--rho", rho)) if value is not None]
    if delta is not None and epsilon is None:
        raise InvalidArgumentError("`delta` needs `epsilon`: together they are an approximate promise.")
    if len(kinds) != 1:
        raise InvalidArgumentError(
            "give one promise: `epsilon` E (pure), `epsilon` E `delta` D (approximate), `mu` M (Gaussian) or "
            "`rho` R (zero-concentrated); got {detail}.",
            detail=", ".join(kinds) if kinds else Message("none"),
        )
    try:
        if epsilon is not None:
            return PureDP(_decimal(epsilon)) if delta is None else ApproxDP(_decimal(epsilon), _decimal(delta))
        return GDP(_decimal(mu)) if mu is not None else ZCDP(_decimal(rho or ""))
    except InvalidArgumentError as problem:
        raise InvalidArgumentError("--{problem}", problem=problem) from None


def _decimal(typed: str) -> str:
    """Return a typed number as promises take it: without spaces around it, and .5, 2. and 1E-6 as 0.5, 2 and 1e-6."""
    text = typed.strip().lower().removesuffix(".")
    return f"0{text}" if text.startswith(".") else text


def shape_of(text: str | None) -> Any:
    """Return a shape: None, "private", or the array that a file holds.

    Examples
    --------
    >>> shape_of("private")
    'private'
    """
    return text if text is None or text == PRIVATE else data.load_array(text)


def refuse_classes(words: Mapping[str, Any], outputs: object = None) -> None:
    """Refuse --classes that are no two or more names, before anything is read."""
    checked_names(class_words(words["classes"]))
