"""Calendars as files (Parquet, CSV, JSON, iCalendar) and exchanges' holidays, as rows and days. Wiring opens them."""
