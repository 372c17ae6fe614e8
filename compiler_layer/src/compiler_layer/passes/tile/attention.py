"""Blocks of attention: of query rows and of keys, and the choice between single-pass and online.

A unit is the work of one tile at a time: rows of the query heads that share a key head. With one
block of rows per key head, tiles split the heads of all sequences; with more blocks, they split a
head's rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from compiler_layer.errors import DoesNotFit
from compiler_layer.passes.tile.machine import Machine, Moved, Pipeline, Price, cuts, width
from compiler_layer.schedule.unroll.attention import programs
from compiler_layer.schedule.unroll.attention.operands import SHARED_BYTES
from driver_layer.abi.cost import KernelCounts, MatmulShape, dpu_ns, kernel_work, shave_ns
from driver_layer.abi.shave import MAX_ELEMENTS, Instruction
from driver_layer.abi.tasks import DPU_MAX_DIM

_GRAIN = 16
"""Granularity of blocks of keys."""


@dataclass(frozen=True, slots=True)
class AttentionProblem:
    """Attention of q [heads, m, depth] over ``length`` positions in ``parts`` tensors.

    These sizes hold for each of ``sequences``.
    """

    heads: int
    key_heads: int
    m: int
    length: int
    depth: int
    value_depth: int
    parts: int
    q: str
    kv: str
    out: str
    mask: str | None = None
    mask_per_head: bool = False
    scales: str | None = None
    """Type of the row scales of keys and values in 8 bits."""
    reach: tuple[int, ...] = ()
    """Number of positions that each query row may attend to; empty for all positions."""
    sequences: int = 1
    mask_per_sequence: bool = False

    @property
    def group(self) -> int:
        """Query heads that share a key head."""
        return self.heads // self.key_heads

    @property
    def all_heads(self) -> int:
        """Key heads of all sequences."""
        return self.sequences * self.key_heads


@dataclass(frozen=True, slots=True)
class AttentionChoice:
    """Query rows of a unit, keys of a block, and positions whose scores CMX holds together."""

    rows: int
    keys: int
    positions: int
    tiles: int


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Bytes of CMX on a tile."""

    least: int
    doubled: int
    """Bytes including the loads of the next step."""


@cache
def choose_attention(x: AttentionProblem, machine: Machine) -> AttentionChoice:
    """Choose the blocks of an attention.

    Raises:
        DoesNotFit: one row with the smallest block of keys does not fit CMX.
    """
    candidates = _candidates(x, machine)
    best = min(candidates, key=lambda each: price_attention(x, each, machine).ns, default=None)
    if best is None:
        smallest = AttentionChoice(1, min(_GRAIN, x.length), min(_GRAIN, x.length), 1)
        need = _sizes(x, smallest).least
        raise DoesNotFit(f"attention over {x.length} positions", need, machine.cmx_bytes)
    return best


def _candidates(x: AttentionProblem, machine: Machine) -> Iterator[AttentionChoice]:
    for rows in cuts(x.m, most=DPU_MAX_DIM // x.group):
        for keys in cuts(x.length, _GRAIN, DPU_MAX_DIM):
            for positions in dict.fromkeys((x.length, keys)):
                fits = _sizes(x, AttentionChoice(rows, keys, positions, 1)).least
                elements = x.group * rows * positions
                if fits <= machine.cmx_bytes and elements <= MAX_ELEMENTS:
                    for tiles in machine.tile_counts():
                        yield AttentionChoice(rows, keys, positions, tiles)


def _is_online(x: AttentionProblem, choice: AttentionChoice) -> bool:
    return choice.positions < x.length


def _sizes(x: AttentionProblem, choice: AttentionChoice) -> _Sizes:
    stacked = x.group * choice.rows
    narrow = x.q != "f32"
    scores = stacked * choice.positions * (4 + (width(x.q) if narrow else 0))
    queries = stacked * x.depth * width(x.q)
    blocks = -(-x.m // choice.rows)
    used = min(choice.tiles, x.all_heads * blocks)
    tables = _tables(x, choice.keys, -(-used // blocks)).nbytes
    keys = choice.keys * x.depth * width(x.kv) + tables
    values = choice.keys * x.value_depth * width(x.kv) + tables
    mask = _mask_bytes(x, choice)
    sums = stacked * x.value_depth * (4 + (width(x.out) if x.out != "f32" else 0))
    if _is_online(x, choice):
        kept = queries + scores + sums + 2 * 4 * stacked
        passing = keys + values + mask
        return _Sizes(int(kept + passing), int(kept + 2 * passing))
    # Scores are dead where the context is placed, and weights where the next scores are.
    first, second = queries + scores + mask, stacked * choice.positions * width(x.q) + sums
    return _Sizes(
        int(max(first + keys, second + values)),
        int(max(first + keys + max(keys, values), second + 2 * values, second + values + queries)),
    )


def _tables(x: AttentionProblem, keys: int, heads: int) -> Moved:
    """Return the transfers of the scales of a block of keys and values, for ``heads`` key heads."""
    if x.scales is None:
        return Moved(0, 0, 0)
    every = int(x.key_heads * width(x.scales))
    if every < SHARED_BYTES:
        return Moved(2, keys * every, keys * every)
    run = int(heads * width(x.scales))
    return Moved(2, keys * run, run)


def _mask_bytes(x: AttentionProblem, choice: AttentionChoice) -> int:
    if x.mask is None:
        return 0
    heads = x.group if x.mask_per_head else 1
    return int(heads * choice.rows * choice.positions * width(x.mask))


def price_attention(x: AttentionProblem, choice: AttentionChoice, machine: Machine) -> Price:
    """Price a choice."""
    blocks = -(-x.m // choice.rows)
    units = x.all_heads * blocks
    groups, used = -(-units // choice.tiles), min(choice.tiles, units)
    heads = -(-used // blocks)  # key heads that a group of units needs
    price = _online if _is_online(x, choice) else _single_pass
    return _reaching(price(x, choice, machine, used, heads), x, choice).times(groups)


def _reaching(price: Price, x: AttentionProblem, choice: AttentionChoice) -> Price:
    """Scale a price by the share of positions that units attend to; blocks beyond are skipped."""
    attended = _attended(x, choice.rows, choice.tiles)
    if attended == 1.0:
        return price
    shorter = price.times(attended)
    if _is_online(x, choice) or choice.keys < x.length:
        return shorter
    return shorter._replace(
        transfers=price.transfers, products=price.products, invocations=price.invocations
    )


@cache
def _attended(x: AttentionProblem, rows: int, tiles: int) -> float:
    """Return the share of positions that groups attend to; a group's longest reach decides."""
    if not x.reach:
        return 1.0
    units = _limits(x.reach, rows) * x.all_heads
    farthest = [max(units[i : i + tiles]) for i in range(0, len(units), tiles)]
    return sum(farthest) / (x.length * len(farthest))


@cache
def _limits(reach: tuple[int, ...], rows: int) -> list[int]:
    """Return the reach of each block of query rows."""
    return [max(reach[begin : begin + rows]) for begin in range(0, len(reach), rows)]


def _online(
    x: AttentionProblem, choice: AttentionChoice, machine: Machine, used: int, heads: int
) -> Price:
    stacked, keys = x.group * choice.rows, choice.keys
    steps = x.length / keys
    cut = x.parts - 1  # parts that begin in the middle of a block
    masks = _mask_moved(x, choice, used, heads)
    products_ns = _products_ns(x, stacked, keys, machine)
    softmax_ns = _program_ns(
        machine,
        programs.online(x.mask is not None, first=False),
        stacked,
        programs.online_windows(keys, x.value_depth, x.q, x.mask, first=False),
    )
    results_ns = machine.move_ns(*_results(x, choice, used))
    finish_ns = _program_ns(
        machine,
        programs.finish(),
        stacked,
        ((x.value_depth, "f32"), (1, "f32"), (x.value_depth, x.out)),
    )
    pipeline = Pipeline(
        first_ns=machine.move_ns(*_queries(x, choice, used), *_keys_and_values(x, keys, heads)),
        steps=steps,
        load_ns=machine.move_ns(*masks, *_keys_and_values(x, keys, heads)),
        work_ns=products_ns + softmax_ns,
        store_ns=results_ns + finish_ns,
        overlaps=_sizes(x, choice).doubled <= machine.cmx_bytes,
    )
    loads = 2 * (heads + (x.scales is not None))
    moved = sum(one.count for one in masks) + loads
    blocks = -(-x.length // keys)
    return Price(
        work_ns=pipeline.ns,
        dma_ns=pipeline.first_ns + (steps - 1) * pipeline.load_ns + results_ns,
        dpu_ns=steps * products_ns,
        shave_ns=steps * softmax_ns + finish_ns,
        transfers=blocks * moved + loads * cut + 2 * used,
        products=blocks * 2 * used,
        invocations=blocks * used + used,
        tail_ns=pipeline.work_ns + pipeline.store_ns,
    )


def _single_pass(
    x: AttentionProblem, choice: AttentionChoice, machine: Machine, used: int, heads: int
) -> Price:
    stacked = x.group * choice.rows
    masks = _mask_moved(x, choice, used, heads)
    loads = machine.move_ns(
        *_queries(x, choice, used), *masks, *_keys_and_values(x, x.length, heads)
    )
    products_ns = _products_ns(x, stacked, x.length, machine)
    softmax_ns = _program_ns(
        machine,
        programs.softmax(x.mask is not None),
        stacked,
        programs.softmax_windows(x.length, x.q, x.mask),
    )
    work = products_ns + softmax_ns
    overlaps = _sizes(x, choice).doubled <= machine.cmx_bytes
    blocks = -(-x.length // choice.keys)
    both = 2 * (heads + (x.scales is not None))
    moved = sum(one.count for one in masks) + used + both * (blocks + x.parts - 1)
    # The next units' loads hide behind this one's work as far as they fit.
    return Price(
        work_ns=max(loads, work) if overlaps else loads + work,
        dma_ns=loads,
        dpu_ns=products_ns,
        shave_ns=softmax_ns,
        transfers=moved + used,
        products=2 * used * blocks,
        invocations=used,
        tail_ns=work,
    )


def _products_ns(x: AttentionProblem, stacked: int, keys: int, machine: Machine) -> float:
    scores = MatmulShape(stacked, keys, x.depth, x.q, x.kv)
    context = MatmulShape(stacked, x.value_depth, keys, x.q, x.kv)
    return dpu_ns(machine.platform, scores) + dpu_ns(machine.platform, context)


def _program_ns(
    machine: Machine,
    program: tuple[Instruction, ...],
    rows: int,
    windows: tuple[tuple[int, str], ...],
) -> float:
    return shave_ns(machine.platform, _row_work(program, windows)._replace(rows=rows))


@cache
def _row_work(
    program: tuple[Instruction, ...], windows: tuple[tuple[int, str], ...]
) -> KernelCounts:
    """Return the work of one row, whatever the number of rows of a unit."""
    return kernel_work(program, 1, windows)


def _queries(x: AttentionProblem, choice: AttentionChoice, used: int) -> tuple[Moved, ...]:
    run = int(x.depth * width(x.q))
    return (Moved(used, x.group * choice.rows * run, run),)


def _results(x: AttentionProblem, choice: AttentionChoice, used: int) -> tuple[Moved, ...]:
    run = int(x.value_depth * width(x.out))
    return (Moved(used, x.group * choice.rows * run, run),)


def _keys_and_values(x: AttentionProblem, keys: int, heads: int) -> tuple[Moved, ...]:
    runs = [int(depth * width(x.kv)) for depth in (x.depth, x.value_depth)]
    return (*(Moved(heads, keys * run, run) for run in runs), _tables(x, keys, heads))


def _mask_moved(
    x: AttentionProblem, choice: AttentionChoice, used: int, heads: int
) -> tuple[Moved, ...]:
    if x.mask is None:
        return ()
    # A mask for all heads is loaded once for tiles with the same rows, of one sequence or of all.
    alike = heads if not x.mask_per_sequence else min(heads, x.key_heads)
    shared = used if x.mask_per_head else max(1, used // alike)
    run = int(choice.positions * width(x.mask))
    return (Moved(shared, _mask_bytes(x, choice), run),)
