from htfi.domain.errors import HtfiError as HtfiError
from htfi.library.forecast import Forecast as Forecast
from htfi.library.forecast import RowsSetAside as RowsSetAside
from htfi.library.forecast import forecast as forecast

__version__: str
__all__: list[str]
