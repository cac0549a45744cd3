"""Results in the formats of other tools."""

from redline.extras.exports.benchmarks import bmf, smaller_is_better
from redline.extras.exports.recorded_files import (
    collapsed_stacks,
    hgrm,
    hlog,
    intervals_csv,
    intervals_ndjson,
    png_files,
    speedscope_files,
)
from redline.extras.exports.request_files import request_table, request_writer
from redline.extras.exports.tables import arrow_table, library, pandas_frame, parquet, polars_frame
from redline.render.svg import svg_files
