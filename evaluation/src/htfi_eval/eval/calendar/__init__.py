"""`htfi eval calendar`: forecasts of the bars that hold a scheduled release."""
