"""The parts of a report: blocks, tables, figures, scales, the order of sections, and numbers as texts."""
