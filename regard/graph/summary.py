"""A value in a few characters: small arrays in full, large ones by shape and range."""

from regard.graph.operation import Array


def summarise(value: Array, digits: int, max_numbers: int) -> str:
    """All numbers of `value`, or "(5, 7) -1.2 … 0.8" if there are more than `max_numbers`."""
    if value.size <= max_numbers:
        return _format_array(value, digits)
    if value.dtype == bool:
        return f"{value.shape} {value.sum()} of {value.size} True"
    low, high = format_number(value.min().item(), digits), format_number(value.max().item(), digits)
    return f"{value.shape} all {low}" if low == high else f"{value.shape} {low} … {high}"


def format_number(value: float, digits: int) -> str:
    """So many significant digits, and True or False for a bool."""
    if isinstance(value, bool):
        return str(value)
    return f"{value + 0.0:.{digits}g}"  # + 0.0 turns -0 into 0


def _format_array(value: Array, digits: int) -> str:
    if value.ndim == 0:
        return format_number(value.item(), digits)
    return f"[{', '.join(_format_array(part, digits) for part in value)}]"
