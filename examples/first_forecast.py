"""A first forecast from Python: python examples/first_forecast.py prices.csv"""

import sys

import htfi

print(htfi.forecast(sys.argv[1]).quantiles)
