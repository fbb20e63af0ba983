"""Pictures of chapter 18: profiling."""

from __future__ import annotations

from grader.report.drawing import INK, Sheet, colour_of

#: Name, line, begin and end, in units of the picture: nothing here was measured.
_HOST = (
    ("aten::layer_norm", 0, 0.0, 4.0),
    ("aten::native_layer_norm", 1, 0.4, 3.8),
    ("cudaLaunchKernel", 2, 2.0, 3.5),
)

_KERNEL = (4.3, 7.6)


def profiler_timeline() -> Sheet:
    """A call on the host, and the kernel that it has launched, later, on the device."""
    sheet = Sheet(10.2, 3.7)
    x0, top, step = 1.3, 3.0, 0.5
    sheet.text(0.6, top - step, "host", 11, bold=True)
    for name, line, begin, end in _HOST:
        sheet.bar(x0 + begin, top - line * step, end - begin, name, colour_of(line))
    y = top - 3.6 * step
    sheet.text(0.6, y, "device", 11, bold=True)
    begin, end = _KERNEL
    sheet.bar(x0 + begin, y, end - begin, "kernel of the layer norm", colour_of(3))
    sheet.arrow((x0 + 3.0, top - 2.45 * step), (x0 + begin + 0.2, y + 0.22), colour=INK)
    for x, text in ((_HOST[0][3], "the call returns"), (end, "the work is done")):
        sheet.axes.plot([x0 + x] * 2, [0.75, top + 0.3], color=INK, lw=1.5, ls="--", zorder=6)
        sheet.text(x0 + x, top + 0.5, text, 10, bold=True)
    sheet.arrow((x0, 0.5), (x0 + 8.0, 0.5), colour=INK)
    sheet.text(x0 + 4.0, 0.2, "time", 10)
    return sheet


PICTURES = (profiler_timeline,)
