"""What each kind of number from outside can be. Intake refuses the rest, so that no arithmetic overflows later."""

MIN_PRICE, MAX_PRICE = 1e-12, 1e12  # from a token worth a trillionth to an index in a failed currency
MIN_SIZE, MAX_SIZE = 1e-18, 1e18  # tokens are counted in units of 1e-18; a size may also be 0
MIN_VALUE, MAX_VALUE = 1e-18, 1e18  # size of a macro value, which may also be 0
MAX_LOG_RETURN = 56.0  # ln(MAX_PRICE / MIN_PRICE) is 55.3: no return is larger


def is_price(value: float) -> bool:
    """Whether a number can be a price. NaN cannot."""
    return MIN_PRICE <= value <= MAX_PRICE


def is_size(value: float) -> bool:
    """Whether a number can be a size or a volume. NaN cannot."""
    return value == 0.0 or MIN_SIZE <= value <= MAX_SIZE


def is_value(value: float) -> bool:
    """Whether a number can be a macro value. NaN cannot."""
    return value == 0.0 or MIN_VALUE <= abs(value) <= MAX_VALUE
