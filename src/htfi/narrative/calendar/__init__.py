"""Scheduled announcements: when they come, their plausible outcomes, and which outcome a headline reports."""
