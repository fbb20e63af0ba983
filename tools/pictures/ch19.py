"""Pictures of chapter 19: backends."""

from __future__ import annotations

from matplotlib.patches import Rectangle

from grader.report.drawing import INK, Sheet, colour_of, tint

#: Top to bottom: what the layer is, and what it is for gloo, MPI and NCCL.
_LAYERS = (
    ("launcher", "torchrun", "mpiexec", "torchrun"),
    ("process group", "gloo", "MPI", "NCCL"),
    (
        "messages go by", "TCP", "shared memory,\nthe cluster's network",
        "NVLink, PCIe,\nInfiniBand, TCP",
    ),
    ("tensors are on", "the CPU", "the CPU", "a GPU of its own\nfor each rank"),
)  # fmt: skip

_LEFT, _WIDTH, _HEIGHT, _GAP = 1.75, 2.35, 0.62, 0.16


def backend_stacks() -> Sheet:
    """Three stacks side by side, from the launcher to the device; your program is in each."""
    sheet = Sheet(_LEFT + 3 * (_WIDTH + _GAP) + 0.1, 5.1)
    y = 4.3
    for number, (name, *boxes) in enumerate(_LAYERS):
        sheet.text(_LEFT - 0.15, y + _HEIGHT / 2, name, 10, bold=True, align="right")
        for column, text in enumerate(boxes):
            _box(sheet, _LEFT + column * (_WIDTH + _GAP), y, _WIDTH, text, colour_of(column))
        y -= _HEIGHT + _GAP
        if number == 0:
            for text in ("your program", "torch.distributed"):
                _box(sheet, _LEFT, y, 3 * _WIDTH + 2 * _GAP, text, INK)
                y -= _HEIGHT + _GAP
    return sheet


def _box(sheet: Sheet, x: float, y: float, width: float, text: str, colour: str) -> None:
    fill = "#f2f2f2" if colour == INK else tint(colour)
    sheet.axes.add_patch(Rectangle((x, y), width, _HEIGHT, fc=fill, ec=colour, lw=1.6))
    sheet.text(x + width / 2, y + _HEIGHT / 2, text, 10.5)


PICTURES = (backend_stacks,)
