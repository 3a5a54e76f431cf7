from htfi.domain.errors import HtfiError as HtfiError
from htfi.library import scoring as scoring
from htfi.library.backtest import Backtest as Backtest
from htfi.library.backtest import backtest as backtest
from htfi.library.forecast import Explanation as Explanation
from htfi.library.forecast import ForecastResult as ForecastResult
from htfi.library.forecast import forecast as forecast
from htfi.library.ledgers import Ledger as Ledger
from htfi.library.ledgers import LedgerVerification as LedgerVerification
from htfi.library.ledgers import open_ledger as open_ledger
from htfi.library.marks import MarkVerification as MarkVerification
from htfi.library.marks import make_mark_key as make_mark_key
from htfi.library.marks import verify_mark as verify_mark
from htfi.library.read import NewsReading as NewsReading
from htfi.library.read import read as read
from htfi.library.results import RowsSetAside as RowsSetAside
from htfi.library.runs import EventsNotTaken as EventsNotTaken
from htfi.library.runs import Run as Run
from htfi.library.runs import open_run as open_run
from htfi.library.scenarios.scenario import ScenarioResult as ScenarioResult
from htfi.library.scenarios.scenario import scenario as scenario
from htfi.library.writers import Generation as Generation
from htfi.library.writers import GenerationStream as GenerationStream
from htfi.library.writers import Writer as Writer
from htfi.library.writers import load_pair as load_pair

__version__: str
__all__: list[str]
